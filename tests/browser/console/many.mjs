// Two thousand tools, and a log of many runs: a key press, a choice and a page take no time to
// speak of, and nothing waits for a list that is read anew.
import assert from "node:assert/strict";
import { copyFileSync, writeFileSync } from "node:fs";
import { argumentsOf, click, launch, nothingHappened, open, shot, text, visit, waitForText, watchFrames } from "./driver.mjs";

/** Bound of a gap between two frames, on a busy machine, in milliseconds. */
const LARGEST_GAP = 1000;

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await waitForText(page, "2,001 tools", ".side");
  const rows = async () => (await page.$$(".side li")).length;
  assert.ok((await rows()) <= 300, "the rows are bounded");
  let frames = await watchFrames(page);
  await page.evaluate(async () => {
    const search = document.getElementById("search");
    for (const text of ["t", "to", "too", "tool1", "tool19", ""]) {
      search.value = text;
      search.dispatchEvent(new Event("input"));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    }
  });
  const search = await frames();

  // A late tool, without a filter: the list is where it is, and stays there.
  frames = await watchFrames(page);
  await visit(page, "#/tools/many%2Ftool999");
  await waitForText(page, "Number 999.", ".detail");
  const isInView = () => page.$eval(".side a[aria-current]", (link) => {
    const [row, side] = [link, link.closest(".side")].map((one) => one.getBoundingClientRect());
    return row.top >= side.top && row.bottom <= side.bottom;
  });
  assert.ok(await isInView(), "what is chosen is in view");
  for (const name of ["many/tool998", "many/tool997", "many/tool996", "many/tool995"]) {
    const scroll = await page.$eval(".side", (side) => side.scrollTop);
    await click(page, ".side .name", name);
    await waitForText(page, `Number ${name.slice(9)}.`, ".detail");
    assert.ok(Math.abs((await page.$eval(".side", (side) => side.scrollTop)) - scroll) < 400, "the list stays where it was");
    assert.ok(await isInView());
  }
  assert.ok((await rows()) <= 300, "the rows are bounded");
  await click(page, ".side button", (await text(page, ".side > button")).trim());
  assert.ok((await rows()) <= 300, "and so they are elsewhere in the list");
  const choices = await frames();
  await shot(page, "late-tool");

  // The list is old: it is read in the background, and what is asked for is shown meanwhile.
  await page.setRequestInterception(true);
  const held = [];
  let isHolding = true;
  const hold = (request) => {
    if (isHolding && request.url().includes("/console/api/catalog")) held.push(request);
    else request.continue();
  };
  page.on("request", hold);
  const passTime = () => page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
  });
  await passTime();
  await page.evaluate(() => (location.hash = "#/tools/many%2Ftool7"));
  await waitForText(page, "Number 7.", ".detail");
  await page.waitForFunction(() => document.querySelector("#main:not([aria-busy])"));
  assert.equal(held.length, 1, "the list is being read");
  await argumentsOf(page, { kept: 1 });
  isHolding = false;
  const renewed = page.waitForResponse((response) => response.url().includes("/console/api/catalog"));
  await held[0].continue();
  await renewed;

  // It is shown when it has changed, and a form keeps what was entered.
  copyFileSync("scripts/many/tool7", "scripts/many/latest");
  writeFileSync("scripts/many/latest.mcpd.toml", 'description = "The latest."\n');
  await page.waitForFunction(async () => {
    const response = await fetch("/console/api/catalog", { headers: { "Mcpd-Console": localStorage.getItem("mcpd-console-key") } });
    return (await response.text()).includes("many/latest");
  }, { timeout: 30_000, polling: 500 });
  await passTime();
  await page.evaluate(() => (location.hash = "#/tools/many%2Ftool8"));
  await waitForText(page, "Number 8.", ".detail");
  await argumentsOf(page, { kept: 2 });
  await waitForText(page, "2,002 tools", "#count");
  assert.equal(await page.$eval("#json", (editor) => editor.value.replace(/\s/g, "")), '{"kept":2}');
  page.off("request", hold);
  await page.setRequestInterception(false);

  await page.type("#search", "tool1999");
  await waitForText(page, "1 of 2002 tools", "#count");
  await click(page, ".side .name", "many/tool1999");
  await waitForText(page, "Number 1999.");

  frames = await watchFrames(page);
  await visit(page, "#/runs");
  await waitForText(page, "1 to 100 of 100,000");
  await click(page, "button", "Older");
  await waitForText(page, "101 to 200 of 100,000");
  assert.equal((await page.$$("table.runs tbody tr")).length, 100);
  const runs = await frames();
  await shot(page, "many-runs");
  for (const gap of [search, choices, runs]) assert.ok(gap < LARGEST_GAP, `gaps between frames: ${[search, choices, runs]} ms`);
  console.log(JSON.stringify({ largestGapsMs: { search, choices, runs } }));
  nothingHappened(page);
} finally {
  await browser.close();
}
