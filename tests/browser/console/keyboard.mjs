// The keyboard alone: a whole call with its form, a question, the runs with filter, record and
// cancellation, and the entry of a client. The names that readers of screens are told fit.
import assert from "node:assert/strict";
import { allowClipboard, launch, nothingHappened, open, settle, shot, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await allowClipboard(page);
  await waitForText(page, "math/add", ".side");
  const focus = () => page.evaluate(() => {
    const element = document.activeElement;
    const label = element.labels?.[0]?.innerText ?? element.getAttribute("aria-label") ?? element.innerText;
    return `${element.tagName.toLowerCase()} ${label.split("\n")[0].trim()}`;
  });
  /** Presses Tab until the focus is where the words say. */
  async function tabTo(words) {
    const passed = [];
    for (let count = 0; count < 60; count += 1) {
      await page.keyboard.press("Tab");
      const here = await focus();
      passed.push(here);
      if (here.includes(words)) return;
    }
    assert.fail(`Tab never reaches ${words}: ${passed.join(", ")}`);
  }
  async function enter(words, key = "Enter") {
    await tabTo(words);
    await page.keyboard.press(key);
  }
  async function selectAll() {
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
  }
  async function runByKeys() {
    await page.keyboard.down("Control");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Control");
  }
  /** Opens a tool by the search. */
  async function find(text, words) {
    await page.keyboard.press("/");
    await selectAll();
    await page.keyboard.type(text);
    await enter(`a ${text}`);
    await waitForText(page, words, ".detail");
    assert.equal(await focus(), `h1 ${text}`, "the new view is announced");
  }
  const status = () => page.$eval("#status", (element) => element.textContent);

  // A call with a list.
  await page.keyboard.press("Tab");
  assert.equal(await focus(), "a Skip to the content");
  await find("math/add", "Adds the numbers of a list.");
  await enter("Add an item");
  await page.keyboard.type("20");
  await enter("Add an item");
  await page.keyboard.type("22");
  await tabTo("scale");
  await selectAll();
  await page.keyboard.type("1");
  await enter("Run");
  await waitForText(page, "Succeeded after");
  await waitForText(page, "42", ".result");
  assert.equal(await focus(), "button Run");
  assert.match(await status(), /^Succeeded after/);

  // Names that readers of screens are told while a call runs.
  await find("report/build", "Builds a report.");
  await enter("Run");
  await waitForText(page, "page 2 has no title", "pre.log");
  assert.equal(await focus(), "button Cancel");
  assert.equal(await status(), "The call runs.");
  const names = namesIn(await page.accessibility.snapshot({ interestingOnly: false }));
  for (const name of ["progressbar: Progress of the call", "log: Log of the call", "region: Outcome of the call", "button: Cancel", "form: Call report/build", "heading: report/build", "navigation: Tools", "navigation: Views"]) {
    assert.ok(names.includes(name), `${name} in ${names.join(", ")}`);
  }
  assert.deepEqual(names.filter((name) => /^(button|link|textbox|combobox|searchbox|checkbox): ?$/.test(name)), [], "each control has a name");
  await shot(page, "running");
  await page.keyboard.press("Escape");
  await waitForText(page, "Cancelled after");

  // A question.
  await find("ask", "Asks for a name.");
  await tabTo("Arguments as JSON");
  await runByKeys();
  await waitForText(page, "Who is there?");
  assert.equal(await focus(), "h3 A question before the call goes on");
  await tabTo("Name");
  await page.keyboard.type("Ada");
  await shot(page, "question");
  await enter("Accept");
  await waitForText(page, "Hello, Ada.");
  assert.equal(await focus(), "button Run");

  // Runs: one is cancelled, then found by a filter, and its record opened and closed.
  await find("slow", "Waits for a minute.");
  await enter("Run");
  await waitForText(page, "Runs for");
  await enter("a Runs");
  await page.waitForFunction(() => document.activeElement.innerText === "Runs" && document.activeElement.tagName === "H1");
  await enter("Cancel slow");
  await page.waitForFunction(() => document.querySelector(".card .badge")?.textContent === "cancelled", { timeout: 20_000 });
  assert.match(await focus(), /^summary slow/, "the focus stays at the card");
  await page.keyboard.press("Enter");
  await waitForText(page, "INFO waiting");
  await settle(page);
  await enter("button not successful", "Space");
  assert.equal(await focus(), "button not successful", "the focus stays at the filter");
  await page.waitForFunction(() => document.querySelectorAll("table.runs tbody tr:not(.record)").length === 2, { timeout: 20_000 });
  await tabTo("button slow");
  const isOpen = () => page.evaluate(() => document.activeElement.getAttribute("aria-expanded"));
  assert.equal(await isOpen(), "false");
  await page.keyboard.press("Enter");
  await waitForText(page, "cancelled", ".runs");
  await page.waitForSelector(".record dl");
  assert.equal(await isOpen(), "true");
  await shot(page, "record");
  await page.keyboard.press("Enter");
  assert.equal(await isOpen(), "false");

  // Connect: the links, and the command of another client.
  await enter("a Connect");
  await page.waitForFunction(() => document.activeElement.innerText === "Connect" && document.activeElement.tagName === "H1");
  await tabTo("a Add to Cursor");
  await enter("a Zed");
  await page.waitForFunction(() => document.activeElement.innerText === "Zed" && document.activeElement.tagName === "H1");
  await enter("button Copy");
  await page.waitForFunction(() => document.getElementById("status").textContent === "Copied");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^mcpd install zed /);
  nothingHappened(page);
} finally {
  await browser.close();
}

/** Roles with names in a tree. */
function namesIn({ role, name, children = [] }) {
  return [`${role}: ${name ?? ""}`, ...children.flatMap(namesIn)];
}
