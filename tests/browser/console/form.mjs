// The form of a schema: each kind of field, what is wrong with a value, and what is sent.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { accessible, argumentsOf, click, launch, nothingHappened, open, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await visit(page, "#/tools/form");
  await waitForText(page, "Returns its arguments.", ".detail");
  const values = () => page.$eval("#json", (editor) => JSON.parse(editor.value));
  /** The control that a label with this text is for. */
  const labelled = async (name) => {
    const found = await page.evaluateHandle((wanted) => [...document.querySelectorAll("form.work label")].find((label) => label.querySelector(".name")?.innerText === wanted)?.control, name);
    assert.ok(found.asElement(), name);
    return found.asElement();
  };
  const enter = async (name, text) => {
    const field = await labelled(name);
    await field.evaluate((element) => element.select?.());
    if (text === "") await field.press("Backspace");
    else await field.type(text);
    return field;
  };
  /** Descriptions of a control, with a mark if it is invalid. */
  const describe = (field) => field.evaluate((element) => {
    const texts = (element.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.innerText ?? "");
    return `${texts.join(" ").trim()}${element.getAttribute("aria-invalid") === "true" ? " !" : ""}`;
  });
  assert.deepEqual(await values(), {}, "what is left empty is left out, and so is null");

  // Each fault is a message that belongs to its field.
  const faults = [
    ["text", "a", "A word. Expected at least 2 characters. !"],
    ["text", "abcdefgh", "A word. Expected at most 5 characters. !"],
    ["text", "ABC", "A word. Expected a text that matches ^[a-z]+$. !"],
    ["text", "abc", "A word."],
    ["count", "x", "How many. Expected an integer. !"],
    ["count", "1.5", "How many. Expected an integer. !"],
    ["count", "0", "How many. Expected at least 1. !"],
    ["count", "10", "How many. Expected at most 9. !"],
    ["ratio", "-1", "Expected at least 0. !"],
    ["more", "{", "Anything. Expected JSON: a text is between quotes. !"],
  ];
  for (const [name, text, expected] of faults) assert.equal(await describe(await enter(name, text)), expected, `${name}: ${text}`);
  await accessible(page, "form-faults");
  for (const [name, text, expected] of [["count", "9", "How many."], ["ratio", "0.5", ""], ["more", "[1]", "Anything."]]) {
    assert.equal(await describe(await enter(name, text)), expected, `${name}: ${text}`);
  }
  assert.deepEqual(await values(), { text: "abc", count: 9, ratio: 0.5, more: [1] });

  // A text that may be null is a text.
  assert.equal(await (await labelled("Note")).evaluate((element) => element.tagName), "TEXTAREA");
  await enter("Note", "x");
  assert.equal((await values()).note, "x");
  await enter("Note", "");
  assert.equal("note" in (await values()), false);
  assert.match(await describe(await enter("Note", "a\u202eb")), /can't be seen: \[U\+202E\]$/);
  await enter("Note", "");

  // Choices, dates, and files as text and as base64.
  const loud = await labelled("is_loud");
  await loud.select("1");
  assert.equal((await values()).is_loud, false);
  await loud.select("0");
  assert.equal((await values()).is_loud, true);
  const day = await labelled("day");
  assert.equal(await day.evaluate((element) => element.type), "date");
  await day.type("11222026");
  writeFileSync("bytes", Buffer.from([0, 1, 2, 255]));
  writeFileSync("text", "one\ntwo\n");
  for (const [name, file] of [["file", "bytes"], ["page", "text"]]) {
    const field = await labelled(name);
    const button = await field.evaluateHandle((element) => element.parentElement.querySelector("button"));
    const [chooser] = await Promise.all([page.waitForFileChooser(), button.click()]);
    await chooser.accept([file]);
    await page.waitForFunction((element) => element.value !== "", {}, field);
  }
  assert.deepEqual(await values(), { text: "abc", count: 9, ratio: 0.5, is_loud: true, day: "2026-11-22", file: "AAEC/w==", page: "one\ntwo\n", more: [1] });

  // An object, and a list of objects with bounds.
  await enter("city", "Rome");
  await enter("floor", "2");
  const add = () => click(page, "form.work button", "Add an item");
  const list = () => page.evaluateHandle(() => [...document.querySelectorAll("form.work button")].find((one) => one.innerText === "Add an item"));
  for (const name of ["Ada", "Bob", "Eve"]) {
    await add();
    await page.keyboard.type(name);
  }
  assert.match(await describe(await list()), /Expected at most 2 items/);
  assert.deepEqual(await page.$$eval(".items legend", (all) => all.map((one) => one.innerText)), ["Item 1", "Item 2", "Item 3"]);
  await click(page, ".items button", "Remove");
  assert.deepEqual(await page.$$eval(".items > li > button", (all) => all.map((one) => one.getAttribute("aria-label"))), ["Remove item 1", "Remove item 2"]);
  assert.doesNotMatch(await describe(await list()), /Expected/);
  await enter("age", "36");
  const expected = { text: "abc", count: 9, ratio: 0.5, is_loud: true, day: "2026-11-22", file: "AAEC/w==", page: "one\ntwo\n", place: { city: "Rome", floor: 2 }, people: [{ name: "Bob", age: 36 }, { name: "Eve" }], more: [1] };
  assert.deepEqual(await values(), expected);
  await accessible(page, "form");

  // The script gets what the form says, and the form takes what the JSON says.
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  assert.deepEqual(await result(page), expected);
  const other = { count: 1, people: [{ name: "Zoe", age: 1 }], place: { city: "Oslo" }, is_loud: false };
  await argumentsOf(page, other);
  assert.equal(await (await labelled("city")).evaluate((element) => element.value), "Oslo");
  assert.equal(await (await labelled("text")).evaluate((element) => element.value), "");
  await click(page, "button", "Run");
  await page.waitForFunction(() => document.querySelector(".result")?.innerText.includes("Zoe"));
  assert.deepEqual(await result(page), other);
  nothingHappened(page);
} finally {
  await browser.close();
}

/** The structured result, as its JSON is shown. */
async function result(page) {
  await page.$$eval(".result details", (all) => all.forEach((details) => (details.open = true)));
  return JSON.parse(await page.$eval("[aria-label='Structured result as JSON']", (pre) => pre.textContent));
}
