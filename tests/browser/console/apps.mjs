// Apps of tools in their frames: a friendly one, and one that tries everything.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { accessible, argumentsOf, click, launch, nothingHappened, open, text, visit, waitForText } from "./driver.mjs";

const browser = await launch();
/** Requests that an app has got out, by whatever way. */
const leaked = [];
const elsewhere = createServer((request, response) => {
  leaked.push(request.url);
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.end("elsewhere");
});
await new Promise((done) => elsewhere.listen(0, "127.0.0.1", done));
const target = `http://127.0.0.1:${elsewhere.address().port}`;

/** The frame of the app on the page, once it has become the app. */
async function appFrame(page, selector) {
  const element = await page.waitForSelector("iframe.app", { timeout: 30_000 });
  const frame = await element.contentFrame();
  await frame.waitForSelector(selector, { timeout: 30_000 });
  return frame;
}

try {
  const page = await open(browser, process.env.LINK);
  // What the frame's policy blocks is written to the console of the browser.
  const isOfFrame = (fault) => /Content Security Policy|^request: /.test(fault);

  await visit(page, "#/tools/dice");
  await argumentsOf(page, { count: 12 });
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  let frame = await appFrame(page, "#faces .row");
  const times = () => frame.$$eval(".times", (all) => all.map((one) => Number(one.textContent)));
  assert.equal((await times()).reduce((sum, one) => sum + one, 0), 12, "the app shows the result");
  await page.waitForFunction(() => document.querySelector("iframe.app").clientHeight !== 240);
  await accessible(page, "app");

  // A call of the app is asked for, and refused or made.
  await frame.click("#again");
  await waitForText(page, "The app wants to call dice");
  await accessible(page, "app-question");
  await click(page, ".app-box button", "Refuse");
  await frame.waitForFunction(() => document.getElementById("again").textContent === "the call was refused");
  await frame.click("#again");
  await click(page, ".app-box button", "Allow once");
  await frame.waitForFunction(() => [...document.querySelectorAll(".times")].reduce((sum, one) => sum + Number(one.textContent), 0) === 12);
  nothingHappened(page);

  // It fits a narrow screen.
  const { width, height } = page.viewport();
  await page.setViewport({ width: 360, height: 740 });
  await accessible(page, "narrow-app");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  await page.setViewport({ width, height });

  // The page comes back with its result after another view was shown.
  await click(page, "header nav a", "Connect");
  await visit(page, "#/tools/dice");
  frame = await appFrame(page, "#faces .row");

  await visit(page, "#/tools/hostile");
  await argumentsOf(page, { target });
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  frame = await appFrame(page, "#done");
  const outcomes = JSON.parse(await frame.$eval("#done", (done) => done.textContent));
  console.log(JSON.stringify(outcomes, null, 2));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(new URL(page.url()).hash, "#/tools/hostile", "the app has not moved the page");
  assert.equal(browser.targets().filter((one) => one.type() === "page").length, 2, "no window was opened");
  assert.equal(await page.$("main .question"), null, "no call of an unknown tool is asked for");

  // It goes elsewhere by itself, and is stopped; then it floods, and is closed.
  await frame.evaluate((to) => { location.href = `${to}/navigation`; }, target).catch(() => {});
  await new Promise((done) => setTimeout(done, 500));
  assert.deepEqual(leaked, [], "nothing got out");
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  frame = await appFrame(page, "#done");
  await frame.evaluate(() => { for (let count = 0; count < 5000; count += 1) parent.postMessage({ jsonrpc: "2.0", id: count, method: "ping" }, "*"); });
  await waitForText(page, "The app sent too many messages");
  assert.equal(await page.$("iframe.app"), null);
  assert.match(await text(page), /Succeeded after/);

  const faults = page.faults.filter((fault) => !isOfFrame(fault) || fault.startsWith(`request: ${target}`));
  assert.deepEqual(faults.filter((fault) => !fault.startsWith("request: ")), []);
  assert.deepEqual(leaked, [], "nothing got out at last");
} finally {
  await browser.close();
  elsewhere.close();
}
