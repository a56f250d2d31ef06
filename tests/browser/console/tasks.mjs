// Tasks of a new user, by the page and the mouse alone, and the number of clicks that each
// takes. The log has many failures of two teams on three days.
import assert from "node:assert/strict";
import { argumentsOf, click, filter, launch, nothingHappened, open, shot, stopClock, text, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK, async (page) => {
    await stopClock(page);
    // The browser counts: each press of the mouse, and the links to programs that they follow.
    await page.evaluateOnNewDocument(() => {
      window.presses = 0;
      window.followed = [];
      addEventListener("pointerdown", (event) => (window.presses += event.isTrusted ? 1 : 0), true);
      addEventListener("click", (event) => {
        const link = event.target.closest("a");
        if (!link || link.protocol === location.protocol) return;
        window.followed.push(link.href);
        event.preventDefault();
      });
    });
  });
  /** Counts the clicks of a task from the first view on, and compares them with what is allowed. */
  async function task(name, allowed, steps) {
    await visit(page, "#/tools");
    await page.evaluate(() => (window.presses = 0));
    await steps();
    await shot(page, name.replaceAll(" ", "-"));
    const presses = await page.evaluate(() => window.presses);
    assert.ok(presses > 0 && presses <= allowed, `${name}: ${presses} clicks`);
  }
  await task("missing script", 3, async () => {
    await click(page, ".side .name", "forgotten.sh");
    await waitForText(page, "is not executable");
  });
  await task("call with a list", 4, async () => {
    await click(page, ".side .name", "math/add");
    await click(page, "button", "Add an item");
    await page.keyboard.type("7");
    await click(page, "button", "Run");
    await waitForText(page, "Succeeded after");
  });
  await task("failure of team A", 4, async () => {
    await click(page, "header nav a", "Runs");
    await filter(page, "team-a");
    await filter(page, "yesterday");
    await filter(page, "not successful");
    await page.waitForSelector(".record");
    await waitForText(page, "exit code 3 of report/fail", ".record");
    assert.equal((await page.$$("table.runs tbody tr:not(.record)")).length, 1);
    const record = await text(page, ".record");
    assert.match(record, /2026-11-21T01:07:00.000Z/);
    assert.match(record, /team-a/);
  });
  for (const chip of ["team-a", "yesterday", "not successful"]) await filter(page, chip);
  await visit(page, "#/tools/slow");
  await argumentsOf(page, {});
  await click(page, "button", "Run");
  await waitForText(page, "Runs for");
  await task("cancel a run", 2, async () => {
    await click(page, "header nav a", "Runs");
    await click(page, ".card button", "Cancel");
    await page.waitForFunction(() => document.querySelector(".card .badge")?.textContent === "cancelled", { timeout: 20_000 });
  });
  await task("connect Cursor", 2, async () => {
    await click(page, "header nav a", "Connect");
    await click(page, "a.button", "Add to Cursor");
    const [followed] = await page.evaluate(() => window.followed);
    const link = new URL(followed);
    assert.equal(`${link.protocol}//${link.host}${link.pathname}`, "cursor://anysphere.cursor-deeplink/mcp/install");
    const entry = Buffer.from(link.searchParams.get("config"), "base64").toString();
    assert.ok(entry.includes(`${new URL(process.env.LINK).origin}/mcp`), entry);
  });
  nothingHappened(page);
} finally {
  await browser.close();
}
