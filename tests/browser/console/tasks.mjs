// What a new user wants to do, by the page alone, and the number of clicks that it takes.
import assert from "node:assert/strict";
import { argumentsOf, click, launch, nothingHappened, open, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  /** Counts the clicks of a task, and compares them with what is allowed. */
  async function task(name, allowed, steps) {
    await visit(page, "#/tools");
    let clicks = 0;
    await steps(async (selector, label) => {
      clicks += 1;
      await click(page, selector, label);
    }, async (selector, value) => {
      clicks += 1;
      await page.select(selector, value);
    });
    assert.ok(clicks <= allowed, `${name}: ${clicks} clicks`);
  }
  await task("find why a script is missing", 3, async (press) => {
    await press(".side .name", "forgotten.sh");
    await waitForText(page, "is not executable");
  });
  await task("call one with a list", 4, async (press) => {
    await press(".side .name", "math/add");
    await press("button", "Add an item");
    await page.keyboard.type("7");
    await press("button", "Run");
    await waitForText(page, "Succeeded after");
  });
  await task("find a failure of one caller", 4, async (press, choose) => {
    await press("header nav a", "Runs");
    await page.waitForSelector("#run-caller option[value=team-a]");
    await choose("#run-caller", "team-a");
    await choose("#run-outcome", "failed");
    await page.waitForFunction(() => document.querySelectorAll("table.runs tbody tr").length === 1, { timeout: 20_000 });
    await press("table.runs button", "report/fail");
    await waitForText(page, "exit code 3");
  });
  await visit(page, "#/tools/slow");
  await argumentsOf(page, {});
  await click(page, "button", "Run");
  await waitForText(page, "Runs for");
  await task("cancel a run", 2, async (press) => {
    await press("header nav a", "Runs");
    await press(".card button", "Cancel");
    await page.waitForFunction(() => document.querySelector(".card .badge")?.textContent === "cancelled", { timeout: 20_000 });
  });
  await task("connect Cursor", 2, async (press) => {
    await press("header nav a", "Connect");
    await press(".side .name", "Cursor");
    await waitForText(page, "Add to Cursor");
  });
  nothingHappened(page);
} finally {
  await browser.close();
}
