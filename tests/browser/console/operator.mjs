// What operators see and do: runs and tasks of other callers, the list of another, skills, and the
// examination of the machine.
import assert from "node:assert/strict";
import { accessible, click, launch, nothingHappened, open, text, visit, waitForText } from "./driver.mjs";

const { LINK, TEAM } = process.env;
const { origin } = new URL(LINK);
const PREFIX = "io.modelcontextprotocol/";

/** Calls a tool as another client of another caller. */
async function callElsewhere(name, extensions) {
  const meta = { [`${PREFIX}protocolVersion`]: "2026-07-28", [`${PREFIX}clientInfo`]: { name: "elsewhere", version: "1" }, [`${PREFIX}clientCapabilities`]: { extensions } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {}, _meta: meta } });
  const headers = { Authorization: `Bearer ${TEAM}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name };
  const response = await fetch(`${origin}/mcp`, { method: "POST", headers, body });
  return response.text();
}

const browser = await launch();
try {
  // A run that begins before any page is open.
  const call = callElsewhere("slow", {});
  const page = await open(browser, LINK);
  await visit(page, "#/runs");
  await page.waitForSelector(".card summary");
  await click(page, ".card summary .name", "slow");
  await waitForText(page, "INFO waiting");
  await waitForText(page, "team-a");
  await accessible(page, "other-run");
  await click(page, ".card button", "Cancel");
  await page.waitForFunction(() => document.querySelector(".card .badge")?.textContent === "cancelled", { timeout: 20_000 });
  assert.match(await call, /an operator of the server has cancelled this request/);

  const created = await callElsewhere("background", { [`${PREFIX}tasks`]: {} });
  assert.match(created, /taskId/);
  await waitForText(page, "Background tasks");
  await page.waitForSelector("[id^=task-] summary");
  await page.click("[id^=task-] summary");
  await waitForText(page, "half done");
  await accessible(page, "task");
  await page.click("[id^=cancel-]");
  await page.waitForFunction(() => document.querySelector("[id^=task-]") === null, { timeout: 20_000 });

  // The list of another caller, and of a profile.
  await visit(page, "#/tools");
  await page.select("#as", "caller:team-a");
  await waitForText(page, "2 tools", "#count");
  await accessible(page, "seen-as");
  assert.equal(await page.$(".side .badge"), null, "what is not served is for oneself");
  await click(page, ".side .name", "slow");
  await waitForText(page, "Calls are made as yourself only");
  assert.equal(await page.$("form.work"), null, "no call is made as another");
  await page.select("#as", "profile:small");
  await waitForText(page, "1 tool", "#count");
  await page.select("#as", "");
  await page.waitForFunction(() => document.querySelectorAll(".side .list li").length > 5, { timeout: 20_000 });

  await click(page, ".side .name", "dice-odds");
  await waitForText(page, "Judges whether dice are fair");
  await click(page, "button", "skill://dice-odds/references/limits.md");
  await waitForText(page, "nothing speaks against fair dice");
  await accessible(page, "skill");

  await visit(page, "#/server");
  await click(page, "button", "Examine this machine");
  await waitForText(page, "interpreters of scripts");
  await click(page, "button", "Verify the audit log");
  await waitForText(page, "intact");
  await accessible(page, "examined");
  assert.doesNotMatch(await text(page), /undefined|NaN/);
  nothingHappened(page);

  // A caller that is no operator sees its own tools and runs, and nothing of the server.
  const context = await browser.createBrowserContext();
  const other = await open(context, `${origin}/console`);
  await other.type("#token", TEAM);
  await other.keyboard.press("Enter");
  await waitForText(other, "2 tools", "#count");
  assert.equal(await other.$(".side .badge"), null);
  await accessible(other, "team-tools");
  await click(other, ".side .name", "slow");
  await waitForText(other, "Waits for a minute.", ".detail");
  await accessible(other, "team-tool");
  await visit(other, "#/runs");
  await waitForText(other, "These are the runs of team-a.");
  const callers = await other.$$eval("table.runs tbody tr > :nth-child(5)", (all) => [...new Set(all.map((cell) => cell.innerText))]);
  assert.deepEqual(callers, ["team-a"]);
  assert.equal(await other.$("#run-caller"), null);
  await accessible(other, "team-runs");
  await visit(other, "#/server");
  await waitForText(other, "Only operators of this server see its state");
  await accessible(other, "team-server");
  await visit(other, "#/connect/cursor");
  await waitForText(other, "--token-env MCPD_TOKEN");
  assert.doesNotMatch(await text(other), /agent-token/);
  await accessible(other, "team-connect");
  nothingHappened(other);
  await context.close();
} finally {
  await browser.close();
}
