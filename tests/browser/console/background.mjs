// A tool whose calls are tasks: called, asked back, and cancelled by its caller, who is no operator.
import assert from "node:assert/strict";
import { click, launch, nothingHappened, open, visit, waitForText } from "./driver.mjs";

const { LINK, TEAM } = process.env;

const browser = await launch();
try {
  const page = await open(browser, LINK.split("#")[0]);
  await page.waitForSelector("input[type=password]");
  await page.type("input[type=password]", TEAM);
  await page.keyboard.press("Enter");
  await waitForText(page, "greeter", ".side");
  await click(page, ".side .name", "greeter");
  await click(page, "button", "Run");
  await waitForText(page, "Who is there?");
  await page.type(".question textarea", "Ada");
  await click(page, ".question button", "Accept");
  await waitForText(page, "Hello, Ada.");
  await waitForText(page, "Succeeded after");

  await click(page, ".side .name", "background");
  await click(page, "button", "Run");
  await waitForText(page, "The call is a task");
  await click(page, "button", "Cancel");
  await waitForText(page, "Cancelled after");
  await visit(page, "#/runs");
  await page.waitForFunction(() => document.querySelector("[id^=task-]") === null && document.querySelector(".card") !== null, { timeout: 20_000 });

  await visit(page, "#/tools/background");
  await click(page, "button", "Run");
  await waitForText(page, "The call is a task");
  await visit(page, "#/runs");
  await page.waitForSelector("[id^=cancel-]");
  await page.click("[id^=cancel-]");
  await page.waitForFunction(() => document.querySelector("[id^=task-]") === null, { timeout: 20_000 });
  await visit(page, "#/tools/background");
  await waitForText(page, "The task was cancelled.");
  nothingHappened(page);
} finally {
  await browser.close();
}
