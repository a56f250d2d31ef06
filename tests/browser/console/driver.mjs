// A browser with one page of the console, and the steps that the scenarios share.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { BROWSER, PACKAGES, SHOTS } = process.env;
const require = createRequire(`${PACKAGES}/`);
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const WAIT = { timeout: 30_000 };

export async function launch(more = []) {
  return puppeteer.launch({
    executablePath: BROWSER,
    headless: "shell",
    // Chromium's own sandbox needs a user other than root.
    args: ["--no-sandbox", "--disable-gpu", "--no-proxy-server", ...more],
    protocolTimeout: 120_000,
  });
}

/** A page that records what must never happen: faults, dialogs, and requests to elsewhere. */
export async function open(browser, link, prepare) {
  const page = await browser.newPage();
  const faults = [];
  await page.setViewport({ width: 1280, height: 860 });
  page.on("pageerror", (error) => faults.push(`fault: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/Content Security Policy/i.test(message.text())) faults.push(message.text());
  });
  const { origin } = new URL(link);
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("blob:") && !url.startsWith("data:")) faults.push(`request: ${url}`);
  });
  page.faults = faults;
  await prepare?.(page);
  await page.goto(link);
  await page.waitForSelector("h1", WAIT);
  return page;
}

/** Stops the clock of a page at the time of the last records, so that their days have names. */
export async function stopClock(page) {
  await page.emulateTimezone("Asia/Tokyo");
  await page.evaluateOnNewDocument((now) => {
    globalThis.Date = class extends Date {
      constructor(...given) {
        super(...(given.length ? given : [now]));
      }
      static now() {
        return new Date().getTime();
      }
    };
  }, process.env.NOW);
}

export async function visit(page, hash) {
  await page.evaluate((to) => new Promise((resolve) => {
    const before = location.hash;
    addEventListener("hashchange", resolve, { once: true });
    location.hash = to;
    if (location.hash === before) resolve();
  }), hash);
  await settle(page);
}

/** Waits until the view of the address is drawn. */
export async function settle(page) {
  await page.waitForSelector("#main:not([aria-busy])", WAIT);
  await page.waitForNetworkIdle({ idleTime: 150, timeout: 30_000, concurrency: 1 });
}

export async function shot(page, name) {
  if (!SHOTS) return;
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: true });
}

/** Asserts that axe-core finds nothing. The page's policy lets no script in but its own, so axe is
 * put into a world of its own. */
export async function accessible(page, name) {
  await shot(page, name);
  const session = await page.createCDPSession();
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, exceptionDetails?.exception?.description);
    return result.value;
  };
  await evaluate(axe);
  const violations = await evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html + " " + failureSummary).join(" | ")))`);
  assert.deepEqual(violations, [], name);
  await session.detach();
}

export async function text(page, selector = "main") {
  return page.$eval(selector, (element) => element.innerText);
}

/** Clicks the first element of a selector with this text. */
export async function click(page, selector, label) {
  for (let attempt = 1; ; attempt += 1) {
    const found = await page.waitForFunction((css, wanted) => [...document.querySelectorAll(css)].find((element) => element.innerText.trim() === wanted && element.checkVisibility()), WAIT, selector, label);
    try {
      await found.evaluate((element) => element.scrollIntoView({ block: "center" }));
      await found.click();
      return;
    } catch (error) {
      // The view was drawn anew in between.
      if (attempt === 3 || !/detached|not clickable/.test(error.message)) throw error;
    }
  }
}

/** Clicks a button of a filter, once what was asked before is drawn, and waits for its answer. */
export async function filter(page, label) {
  await settle(page);
  await click(page, ".chip", label);
  await settle(page);
}

export async function waitForText(page, wanted, selector = "main") {
  await page.waitForFunction((css, words) => document.querySelector(css)?.innerText.includes(words), WAIT, selector, wanted).catch(async () => {
    assert.fail(`no ${JSON.stringify(wanted)} in:\n${await text(page, selector)}`);
  });
}

/** Writes into the editor of the arguments. */
export async function argumentsOf(page, values) {
  await page.$eval("#json", (editor, json) => {
    editor.value = json;
    editor.dispatchEvent(new Event("input"));
  }, JSON.stringify(values));
}

/** Watches the frames of a page; the function that is returned tells the largest gap between two,
 * in milliseconds. */
export async function watchFrames(page) {
  const watch = await page.evaluateHandle(() => {
    const watch = { largest: 0, isOver: false };
    let last = performance.now();
    requestAnimationFrame(function frame(now) {
      watch.largest = Math.max(watch.largest, now - last);
      last = now;
      if (!watch.isOver) requestAnimationFrame(frame);
    });
    return watch;
  });
  return () => watch.evaluate((watch) => {
    watch.isOver = true;
    return Math.round(watch.largest);
  });
}

export async function allowClipboard(page) {
  const { origin } = new URL(page.url());
  await page.browserContext().overridePermissions(origin, ["clipboard-read", "clipboard-write", "clipboard-sanitized-write"]);
}

/** Presses the button for a copy, and returns what it has put into the clipboard. */
export async function copyText(page, selector, at = 0) {
  await allowClipboard(page);
  const button = (await page.$$(selector))[at];
  await button.evaluate((element) => element.scrollIntoView({ block: "center" }));
  await button.click();
  await page.waitForFunction((element) => element.textContent === "Copied", WAIT, button);
  return page.evaluate(() => navigator.clipboard.readText());
}

export function nothingHappened(page) {
  assert.deepEqual(page.faults, []);
}
