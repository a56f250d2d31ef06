// The log: its filters and pages, and what a record shows.
import assert from "node:assert/strict";
import { accessible, click, filter, launch, nothingHappened, open, stopClock, text, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK, stopClock);
  await visit(page, "#/runs");
  const total = (count) => waitForText(page, `of ${count}`, "main");
  const tools = () => page.$$eval("table.runs tbody button[aria-expanded]", (all) => [...new Set(all.map((button) => button.innerText))].sort());

  // Pages.
  const first = await text(page, "table.runs tbody tr");
  await click(page, "button", "Older");
  await waitForText(page, "101 to");
  await click(page, "button", "Newer");
  await waitForText(page, "1 to 100 of");
  assert.equal(await text(page, "table.runs tbody tr"), first);

  // A tool, and a time of the day of the browser.
  await page.type("#run-tool", "report/fail");
  await page.keyboard.press("Enter");
  await total(1);
  assert.deepEqual(await tools(), ["report/fail"]);
  await page.$eval("#run-tool", (input) => (input.value = ""));
  await page.type("#run-tool", "slow");
  await page.keyboard.press("Enter");
  await filter(page, "today");
  await total(48);
  await filter(page, "yesterday");
  await total(12);
  await filter(page, "last 7 days");
  await total(108);
  await accessible(page, "filtered");
  await filter(page, "last 7 days");
  await page.$eval("#run-tool", (input) => (input.value = ""));
  await page.focus("#run-tool");
  await page.keyboard.press("Enter");

  // Stages of the time, and the confinement with what was missing.
  await filter(page, "team-d");
  await waitForText(page, "queued 200 ms · run 700 ms · other 100 ms", ".record");
  assert.match(await text(page, ".record"), /Sandbox\s+strict/);
  assert.match(await text(page, ".record"), /missing\s+.*limit of memory/);
  await accessible(page, "record");
  nothingHappened(page);
} finally {
  await browser.close();
}
