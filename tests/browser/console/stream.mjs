// A thousand lines a second: they arrive in time, the page answers, and page and server stay
// bounded.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { click, launch, nothingHappened, open, shot, text, visit, waitForText, watchFrames } from "./driver.mjs";

const { LINK, SERVER, FLOOD_SECONDS } = process.env;
const LINES = Number(FLOOD_SECONDS) * 1000;

/** Memory of the server, in bytes. */
function serverMemory() {
  return Number(readFileSync(`/proc/${SERVER}/status`, "utf8").match(/VmRSS:\s+(\d+) kB/)[1]) * 1024;
}

const browser = await launch();
try {
  const page = await open(browser, LINK);
  await visit(page, "#/tools/flood");
  const heap = async () => (await page.metrics()).JSHeapUsedSize;
  const before = { heap: await heap(), server: serverMemory() };
  const highest = { ...before };
  let shown = 0;
  const frames = await watchFrames(page);
  await click(page, "button", "Run");
  await waitForText(page, "line ", "pre.log");
  const began = Date.now();
  while ((await page.$("p.state.running")) !== null) {
    highest.heap = Math.max(highest.heap, await heap());
    highest.server = Math.max(highest.server, serverMemory());
    shown = Math.max(shown, await page.$eval("pre.log", (log) => log.childElementCount));
    await new Promise((done) => setTimeout(done, 100));
  }
  const seconds = (Date.now() - began) / 1000;
  await waitForText(page, "Succeeded after");
  const received = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => {
    const [, count] = document.querySelector(".outcome > .hint").innerText.match(/ of ([\d,]+) lines/);
    done(Number(count.replaceAll(",", "")));
  }, 0))));
  const gap = await frames();
  const figures = {
    received,
    linesPerSecond: Math.round(received / seconds),
    shown,
    largestGapMs: gap,
    heapMb: [before.heap, highest.heap].map((bytes) => Math.round(bytes / 1e6)),
    serverMb: [before.server, highest.server].map((bytes) => Math.round(bytes / 1e6)),
  };
  console.log(JSON.stringify(figures));
  const log = await text(page, "pre.log");
  assert.ok(log.includes(`line ${LINES - 1}\n`), "the last line arrived");
  // The server drops lines when a browser on a busy machine stands still for a quarter of a second.
  assert.ok(received > LINES * 0.95, `${received} lines arrived`);
  assert.equal(shown, 500);
  assert.ok(figures.linesPerSecond > 800, "the lines arrive as fast as they are printed");
  assert.ok(gap < 1000, "the page answers");
  assert.ok(highest.heap - before.heap < 50_000_000, "the page is bounded");
  assert.ok(highest.server - before.server < 50_000_000, "the server is bounded");
  await shot(page, "flood");
  nothingHappened(page);
} finally {
  await browser.close();
}
