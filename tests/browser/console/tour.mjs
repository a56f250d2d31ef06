// Each view and its actions, without a violation of accessibility, and screenshots of all.
import assert from "node:assert/strict";
import { accessible, argumentsOf, click, launch, nothingHappened, open, settle, text, visit, waitForText } from "./driver.mjs";

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  assert.equal(new URL(page.url()).hash, "", "the code stays in no address");

  // Tools: the list, its search and tags.
  await waitForText(page, "math/add", ".side");
  await accessible(page, "tools");
  await page.type("#search", "numbers");
  await waitForText(page, "1 of 7 tools", "#count");
  await page.$eval("#search", (search) => { search.value = ""; search.dispatchEvent(new Event("input")); });
  await click(page, "#tag .chip", "report (2)");
  await waitForText(page, "2 of 7 tools", "#count");
  await click(page, "#tag .chip", "report (2)");

  // Files that are not served, and the reasons.
  for (const [name, words, shot] of [["broken", "a comma with nothing between it and", "fault"], ["forgotten.sh", "is not executable", "passed-over"]]) {
    await click(page, ".side .name", name);
    await waitForText(page, words, ".detail");
    await accessible(page, shot);
  }

  // A form, with the JSON beside it, and a structured result.
  await click(page, ".side .name", "math/add");
  await waitForText(page, "Adds the numbers of a list.", ".detail");
  await page.click(".group button");
  await page.keyboard.type("3");
  await page.click(".group > div > button");
  await page.keyboard.type("4");
  assert.deepEqual(JSON.parse(await page.$eval("#json", (editor) => editor.value)), { numbers: [3, 4], scale: 2, mode: "plain" });
  await argumentsOf(page, { numbers: [3, 4, 5], scale: 1 });
  assert.equal((await page.$$(".items li")).length, 3, "the form follows the JSON");
  await page.$eval("#json", (editor) => { editor.value = "{"; editor.dispatchEvent(new Event("input")); });
  await waitForText(page, "Not read");
  await argumentsOf(page, { numbers: [3, 4, 5], scale: 1 });
  await click(page, "button", "Run");
  await waitForText(page, "Succeeded after");
  await waitForText(page, "Structured result");
  const cells = await page.$$eval(".result table td", (all) => all.map((cell) => cell.innerText));
  assert.deepEqual(cells, ["0", "3", "1", "4", "2", "5"]);
  await accessible(page, "result");
  await click(page, "summary", "Call it from a shell");
  const commands = await page.$$eval("pre.command", (all) => all.map((command) => command.textContent));
  assert.match(commands[0], /mcpd call --token-env MCPD_TOKEN \S+ math\/add 'numbers:=\[3,4,5\]' scale:=1$/);
  assert.match(commands[1], /^curl -N .*\\\n.*agent-token/);
  await click(page, "summary", "Definition, confinement and limits");
  await accessible(page, "definition");

  // Live progress and log.
  await visit(page, "#/tools/report%2Fbuild");
  await click(page, "button", "Run");
  await waitForText(page, "page 2 has no title", "pre.log");
  assert.equal(await page.$eval("progress", (bar) => bar.max), 8);
  await accessible(page, "running");
  await waitForText(page, "Succeeded after");

  // An error, an image, a question.
  await visit(page, "#/tools/report%2Ffail");
  await click(page, "button", "Run");
  await waitForText(page, "Failed after");
  await waitForText(page, "the disk is full");
  await visit(page, "#/tools/picture");
  await click(page, "button", "Run");
  await page.waitForFunction(() => document.querySelector("figure img")?.naturalWidth === 1, { timeout: 20_000 });
  assert.equal((await page.$$("figure img")).length, 1, "what is no image by its bytes is not shown as one");
  await accessible(page, "picture");

  await visit(page, "#/tools/ask");
  await click(page, "button", "Run");
  await waitForText(page, "Who is there?");
  await accessible(page, "question");
  await page.type(".question textarea", "Ada");
  await click(page, ".question button", "Accept");
  await waitForText(page, "Hello, Ada.");

  // Runs: live with cancel, and the log with filters and details.
  await visit(page, "#/tools/slow");
  await click(page, "button", "Run");
  await waitForText(page, "waiting", "pre.log");
  await click(page, "header nav a", "Runs");
  await click(page, ".card button", "Cancel");
  await page.waitForFunction(() => document.querySelector(".card .badge")?.textContent === "cancelled", { timeout: 20_000 });
  await click(page, ".card summary .name", "ask");
  await waitForText(page, "Hello, Ada.", ".card details[open]");
  await accessible(page, "live-card");
  await click(page, ".chip", "not successful");
  await page.waitForFunction(() => document.querySelectorAll("table.runs tbody tr").length === 2, { timeout: 20_000 });
  await click(page, "table.runs button", "report/fail");
  await waitForText(page, "exit code 3");
  await accessible(page, "runs");
  await click(page, ".record button", "Again, with changes");
  await waitForText(page, "Fails, always.");

  // Server.
  await click(page, "header nav a", "Server");
  await waitForText(page, "1 faulty script");
  assert.equal((await page.$$("svg.chart")).length, 8);
  await click(page, "button", "Verify the audit log");
  await waitForText(page, "intact");
  assert.match(await text(page, "[aria-labelledby=configuration]"), /console\s+true\s+--console/);
  await accessible(page, "server");

  // Connect.
  await click(page, "header nav a", "Connect");
  await accessible(page, "connect");
  await click(page, ".side .name", "Cursor");
  await waitForText(page, "mcpd install cursor --url");
  assert.match(await page.$eval("article a.button", (link) => link.href), /^cursor:\/\//);
  await accessible(page, "cursor");

  // Dark and narrow.
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  for (const [hash, name] of [["#/tools/math%2Fadd", "dark-tool"], ["#/runs", "dark-runs"], ["#/server", "dark-server"], ["#/connect", "dark-connect"], ["#/connect/cursor", "dark-cursor"]]) {
    await visit(page, hash);
    await settle(page);
    await accessible(page, name);
  }
  await page.setViewport({ width: 360, height: 740 });
  const narrow = [["#/tools", "narrow-tools"], ["#/tools/math%2Fadd", "narrow-result", runAgain], ["#/runs", "narrow-record", openRecord], ["#/server", "narrow-server"], ["#/connect/cursor", "narrow-connect"]];
  for (const [hash, name, act] of narrow) {
    await visit(page, hash);
    await act?.(page);
    await accessible(page, name);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${name}: ${width}`);
  }

  // The session ends.
  await page.setViewport({ width: 1280, height: 860 });
  await click(page, "button", "Sign out");
  await waitForText(page, "Sign in");
  await accessible(page, "sign-in");
  await page.type("#token", "wrong");
  await page.keyboard.press("Enter");
  await waitForText(page, "this token is not accepted");
  await page.$eval("#token", (token) => (token.value = ""));
  await page.type("#token", process.env.TOKEN);
  await page.keyboard.press("Enter");
  await waitForText(page, "mcpd install cursor --url");
  nothingHappened(page);
} finally {
  await browser.close();
}

async function runAgain(page) {
  await argumentsOf(page, { numbers: [3, 4, 5] });
  await click(page, "button", "Run");
  await waitForText(page, "Structured result");
}

async function openRecord(page) {
  await settle(page);
  await click(page, "table.runs button", "report/fail");
  await waitForText(page, "exit code 3");
}
