// The log: its filters and pages, what a record shows, and runs that are made again.
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

  // Again, with what the log knows; what it does not know is neither filled in nor sent.
  const again = {
    names: [{}, ["mode", "numbers"]],
    hashes: [{}, ["mode", "numbers"]],
    redacted: [{ numbers: [1, 2], scale: 3 }, ["mode"]],
    hash: [{}, ["all arguments"]],
  };
  for (const [client, [values, missing]] of Object.entries(again)) {
    await visit(page, "#/runs");
    const isTeam = await page.$eval(".chip[value=team-c]", (chip) => chip.getAttribute("aria-pressed"));
    if (isTeam === "false") await filter(page, "team-c");
    await total(4);
    const row = await page.evaluateHandle((name) => [...document.querySelectorAll("table.runs tbody tr")].find((one) => one.lastElementChild.innerText === name), client);
    await (await row.$("button")).click();
    await click(page, ".record button", "Again, with changes");
    await waitForText(page, "Enter them again");
    const named = (await text(page, "form .notice")).match(/again: (.*)\.$/)[1];
    assert.deepEqual(named.split(", ").sort(), missing, client);
    const filled = JSON.parse(await page.$eval("#json", (editor) => editor.value));
    assert.deepEqual(filled.numbers?.length ? filled : { ...filled, numbers: undefined }, { numbers: undefined, ...values }, client);
  }
  await accessible(page, "again");
  nothingHappened(page);
} finally {
  await browser.close();
}
