// Actions of a tool beside its call: copies that run in a shell, what a client receives, files,
// questions that are declined, and cancellation; the search of settings, and the links to clients.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { accessible, argumentsOf, click, copyText, launch, nothingHappened, open, shot, text, visit, waitForText } from "./driver.mjs";

const { LINK, TOKEN, MCPD } = process.env;
const { origin } = new URL(LINK);

/** Runs a copied line in a shell. */
function shell(line) {
  const PATH = `${resolve(MCPD, "..")}:${process.env.PATH}`;
  return execFileSync("sh", ["-c", line], { env: { ...process.env, PATH }, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

const browser = await launch();
try {
  const page = await open(browser, LINK);

  // The lines for a shell make the same call, whatever is in its arguments.
  await visit(page, "#/tools/form");
  const values = { count: 3, page: "it's \"so\" $HOME `x` \\ %\n\u202e\u001b[201~\u0003 é 😀", note: "two words", people: [{ name: "Ada" }], is_loud: true };
  await argumentsOf(page, values);
  await click(page, "summary", "Call it from a shell");
  assert.deepEqual(JSON.parse(shell(await copyText(page, "pre.command + .bar button", 0))), values);
  const events = shell(await copyText(page, "pre.command + .bar button", 1)).match(/\{"jsonrpc.*/g).map((line) => JSON.parse(line));
  assert.deepEqual(events.at(-1).result.structuredContent, values);

  // The message that the client receives, to the byte, and its cost.
  const [request] = await Promise.all([page.waitForRequest((one) => one.url().endsWith("/mcp") && one.postData()?.includes("tools/call")), click(page, "button", "Run")]);
  await waitForText(page, "Succeeded after");
  const headers = Object.fromEntries(Object.entries(request.headers()).filter(([name]) => /^(content-type|accept|mcp-)/.test(name) && name !== "mcpd-console"));
  const response = await fetch(`${origin}/mcp`, { method: "POST", headers: { ...headers, Authorization: `Bearer ${TOKEN}` }, body: request.postData() });
  const received = (await response.text()).split("\n").findLast((line) => line.includes('"jsonrpc"')).replace(/^data: ?/, "");
  await page.$$eval(".result details", (all) => all.forEach((details) => (details.open = true)));
  assert.equal(await copyText(page, "[aria-label='Message of the server'] + .bar button"), received);
  const summary = await page.$$eval(".result summary", (all) => all.at(-1).innerText);
  const tokens = Math.ceil(JSON.parse(received).result.content[0].text.length / 4);
  assert.equal(summary, `What the client receives: ${Buffer.byteLength(received)} B, about ${tokens} tokens for a model`);

  // The cost of the tool in a list is the one that the command shows.
  await click(page, "summary", "Definition, confinement and limits");
  const cost = shell(`mcpd list --cost scripts`).match(/^ *(\d+) .* form$/m)[1];
  await waitForText(page, `about ${cost} tokens`, ".detail");
  await accessible(page, "actions");

  // Files are saved as they were.
  const downloads = resolve("downloads");
  mkdirSync(downloads, { recursive: true });
  const session = await browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads, eventsEnabled: true });
  const saved = new Promise((done) => session.on("Browser.downloadProgress", ({ state }) => state === "completed" && done()));
  await page.click("[aria-label='Message of the server'] + .bar button:nth-child(2)");
  await saved;
  assert.ok(existsSync(join(downloads, "result.json")));
  assert.equal(readFileSync(join(downloads, "result.json"), "utf8"), received);

  // Questions: an address that is no link, and a call that needs approval; both declined, then not.
  await visit(page, "#/tools/asks");
  for (const [button, outcome] of [["Decline", "The answer is decline."], ["Accept", "The answer is accept."]]) {
    await click(page, "button", "Run");
    await waitForText(page, "https://login.example/start", ".question");
    assert.equal(await page.$(".question a"), null, "the address is no link");
    await shot(page, "url-question");
    await click(page, ".question button", button);
    await waitForText(page, outcome);
  }
  await visit(page, "#/tools/delete");
  await waitForText(page, "asks for approval", ".badges");
  await click(page, "button", "Run");
  await waitForText(page, "May the tool `delete` run", ".question");
  await accessible(page, "approval");
  await click(page, ".question button", "Decline");
  await waitForText(page, "Failed after");
  assert.doesNotMatch(await text(page), /deleted it/);
  await click(page, "button", "Run");
  await waitForText(page, "May the tool `delete` run", ".question");
  await click(page, ".question button", "Accept");
  await waitForText(page, "deleted it");

  // Cancel beside the form.
  await visit(page, "#/tools/slow");
  await click(page, "button", "Run");
  await waitForText(page, "waiting", "pre.log");
  await click(page, ".work button", "Cancel");
  await waitForText(page, "Cancelled after");

  // Settings are found by their keys.
  await visit(page, "#/server");
  await page.type("#setting", "approval.ask");
  const rows = () => page.$$eval("[aria-labelledby=configuration] tbody tr", (all) => all.map((row) => row.innerText));
  assert.deepEqual((await rows()).length, 1);
  assert.match((await rows())[0], /approval\.ask\s+"destructive"\s+.*mcpd\.toml/);
  await page.$eval("#setting", (input) => (input.value = ""));
  await page.type("#setting", "timeout");
  assert.deepEqual(await rows(), [], "the others have their defaults");
  await page.click("#changed");
  assert.ok((await rows()).length > 0);

  // Each client: a command, an entry, and a link of its own scheme if it has one.
  await visit(page, "#/connect");
  const clients = await page.$$eval(".side a", (all) => all.map((link) => [link.hash, link.querySelector(".badge") !== null]));
  assert.ok(clients.length > 15);
  for (const [hash, hasLink] of clients) {
    await visit(page, hash);
    const commands = await page.$$eval("pre.command", (all) => all.map((command) => command.textContent));
    assert.match(commands[0], new RegExp(`^mcpd install ${hash.split("/").pop()} --url ${origin}/mcp `));
    assert.ok(commands[1].includes("/mcp") || commands[1].includes("mcpd"), commands[1]);
    const links = await page.$$eval("article a.button", (all) => all.map((link) => link.href));
    assert.equal(links.length, hasLink ? 1 : 0, hash);
    for (const link of links) assert.match(link, /^(cursor|vscode|lmstudio|goose):/);
  }
  nothingHappened(page);
} finally {
  await browser.close();
}
