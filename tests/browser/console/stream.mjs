// A thousand lines a second: the page answers, and stays bounded.
import assert from "node:assert/strict";
import { click, launch, nothingHappened, open, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await visit(page, "#/tools/flood");
  await click(page, "button", "Run");
  await waitForText(page, "line", "pre.log");
  const heap = async () => (await page.metrics()).JSHeapUsedSize;
  const before = await heap();
  let slowest = 0;
  let highest = 0;
  const began = Date.now();
  let lines = 0;
  while ((await page.$("p.state.running")) !== null) {
    const took = await page.evaluate(async () => {
      const begin = performance.now();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      return performance.now() - begin;
    });
    slowest = Math.max(slowest, took);
    lines = Math.max(lines, await page.$eval("pre.log", (log) => log.childElementCount));
    highest = Math.max(highest, await heap());
    await new Promise((done) => setTimeout(done, 100));
  }
  await waitForText(page, "Succeeded after");
  assert.ok(slowest < 1000, `a frame took ${slowest} ms`);
  assert.ok(lines <= 500, `${lines} lines`);
  const grown = (await heap()) - before;
  assert.ok(grown < 50_000_000, `${grown} bytes`);
  console.log(JSON.stringify({ seconds: Math.round((Date.now() - began) / 1000), slowestFrameMs: Math.round(slowest), lines, heapMb: [before, highest, before + grown].map((bytes) => Math.round(bytes / 1e5) / 10) }));
  nothingHappened(page);
} finally {
  await browser.close();
}
