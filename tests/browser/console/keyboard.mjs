// A whole call by the keyboard alone: find the tool, fill the form, run, cancel.
import assert from "node:assert/strict";
import { launch, nothingHappened, open, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
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
  await page.keyboard.press("Tab");
  assert.equal(await focus(), "a Skip to the content");
  await page.keyboard.press("/");
  await page.keyboard.type("add");
  await tabTo("math/add");
  await page.keyboard.press("Enter");
  await waitForText(page, "Adds the numbers of a list.");
  assert.equal(await focus(), "h1 math/add", "the new view is announced");
  await tabTo("Add an item");
  await page.keyboard.press("Enter");
  await page.keyboard.type("20");
  await tabTo("Add an item");
  await page.keyboard.press("Enter");
  await page.keyboard.type("22");
  await tabTo("scale");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type("1");
  await tabTo("Run");
  await page.keyboard.press("Enter");
  await waitForText(page, "Succeeded after");
  await waitForText(page, "42", ".result");
  assert.equal(await focus(), "button Run");
  assert.match(await page.$eval("#status", (status) => status.textContent), /^Succeeded after/);

  await page.keyboard.press("/");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type("slow");
  await tabTo("slow");
  await page.keyboard.press("Enter");
  await waitForText(page, "Waits for a minute.");
  await tabTo("Arguments as JSON");
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  await waitForText(page, "Runs for");
  await page.keyboard.press("Escape");
  await waitForText(page, "Cancelled after");
  nothingHappened(page);
} finally {
  await browser.close();
}
