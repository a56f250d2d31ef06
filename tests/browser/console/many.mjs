// Two thousand tools, and a log of many runs: a key press and a page take no time to speak of.
import assert from "node:assert/strict";
import { click, launch, nothingHappened, open, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await waitForText(page, "2,001 tools", ".side");
  assert.ok((await page.$$(".side li")).length < 500, "the rows are bounded");
  const slowest = await page.evaluate(async () => {
    const search = document.getElementById("search");
    let slowest = 0;
    for (const text of ["t", "to", "too", "tool1", "tool19", ""]) {
      const begin = performance.now();
      search.value = text;
      search.dispatchEvent(new Event("input"));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      slowest = Math.max(slowest, performance.now() - begin);
    }
    return slowest;
  });
  assert.ok(slowest < 500, `a key press took ${slowest} ms`);
  await page.type("#search", "tool1999");
  await waitForText(page, "1 of 2001 tools", "#count");
  await click(page, ".side .name", "many/tool1999");
  await waitForText(page, "Number 1999.");
  await visit(page, "#/runs");
  await waitForText(page, "1 to 100 of 100,000");
  await click(page, "button", "Older");
  await waitForText(page, "101 to 200 of 100,000");
  assert.equal((await page.$$("table.runs tbody tr")).length, 100);
  nothingHappened(page);
} finally {
  await browser.close();
}
