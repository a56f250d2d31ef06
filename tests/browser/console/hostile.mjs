// Hostile names, descriptions and outputs: all of it is text, and a huge line leaves the page usable.
import assert from "node:assert/strict";
import { accessible, click, copyText, launch, nothingHappened, open, text, visit, waitForText, watchFrames } from "./driver.mjs";

const MARKUP = "<img src=x onerror=window.hacked=1>";
const FILE = `${MARKUP}[U+202E].sh`;

/** Asserts that texts have become no elements, no code and no links. */
async function isText(page, name) {
  assert.equal(await page.evaluate(() => window.hacked), undefined, name);
  assert.deepEqual(await page.$$eval("main img, main iframe, main script, main b, main object, main base, main form[action]", (all) => all.map((element) => element.outerHTML)), []);
  const links = await page.$$eval("a", (all) => all.map((link) => link.getAttribute("href")));
  assert.deepEqual(links.filter((link) => !link.startsWith("#")), [], "no link of a script");
  assert.doesNotMatch(await text(page), /[\u202e\u001b]/);
  await accessible(page, name);
}

/** Calls a tool as another client. */
async function callAs(client, name, values) {
  const { origin } = new URL(process.env.LINK);
  const prefix = "io.modelcontextprotocol/";
  const meta = { [`${prefix}protocolVersion`]: "2026-07-28", [`${prefix}clientInfo`]: { name: client, version: client }, [`${prefix}clientCapabilities`]: {} };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: values, _meta: meta } });
  const headers = { Authorization: `Bearer ${process.env.TOKEN}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name };
  return (await fetch(`${origin}/mcp`, { method: "POST", headers, body })).text();
}

const browser = await launch();
try {
  const page = await open(browser, process.env.LINK);
  await waitForText(page, "hostile", ".side");
  for (const tool of ["hostile", "pictures"]) {
    await visit(page, `#/tools/${tool}`);
    await click(page, "button", "Run");
    await waitForText(page, "Succeeded after");
    await page.$$eval("details", (all) => all.forEach((details) => (details.open = true)));
    await isText(page, `hostile-${tool}`);
  }
  await visit(page, "#/tools/hostile");
  const shown = await text(page);
  for (const part of ["<script>window.hacked=1</script>", "<img src=x onerror=", "](javascript:window.hacked=1)", "[U+202E]", "[U+200B]"]) {
    assert.ok(shown.includes(part), `${part} in:\n${shown}`);
  }
  assert.ok(!/[\u202e\u001b]/.test(shown));
  // Lines for a shell, shown or copied, can't end a paste or be read in another order.
  assert.equal(JSON.parse(await page.$eval("#json", (editor) => editor.value)).paste, "\u202e\u001b[201~\u0003");
  assert.match(await page.$eval("#json", (editor) => editor.value), /"\\u202e\\u001b\[201~\\u0003"/);
  await click(page, "summary", "Call it from a shell");
  const lines = await page.$$eval("pre.command", (all) => all.map((line) => line.textContent));
  assert.equal(lines.length, 2);
  for (const [at, line] of lines.entries()) {
    assert.match(line, /\\u202e\\u001b\[201~\\u0003/);
    assert.equal(await copyText(page, "pre.command + .bar button", at), line, "what is copied is what is shown");
    assert.match(line, /^[\n\x20-\x7e]*$/);
  }

  // Files that are not served: their names, their faults, and the lines that these are in.
  for (const [name, words] of [[FILE, "not executable"], ["faulty-bidi", "hidden-character"], ["faulty-words", "window.hacked=1"]]) {
    await visit(page, "#/tools");
    const shownName = await page.evaluateHandle((part) => [...document.querySelectorAll(".side .name")].find((one) => one.innerText.includes(part)), name);
    await shownName.click();
    await waitForText(page, words, ".detail");
    await isText(page, `fault-${words.replace(/\W/g, "")}`);
  }

  // A question, and a skill with its file.
  await visit(page, "#/tools/questions");
  await click(page, "button", "Run");
  await waitForText(page, "A question before the call goes on");
  await isText(page, "hostile-question");
  await waitForText(page, "[U+202E]", ".question");
  await click(page, ".question button", "Decline");
  await waitForText(page, "after");
  await click(page, ".side .name", "hostile-skill");
  await click(page, "button.link", "skill://hostile-skill/references/page.md");
  await waitForText(page, "<script>window.hacked=2</script>", ".detail");
  await isText(page, "hostile-skill");

  // A client with a hostile name and hostile arguments, in runs and in the log.
  assert.match(await callAs(`${MARKUP}\u202e`, "hostile", { "<b>bold</b>": `${MARKUP}\u202e`, [MARKUP]: MARKUP }), /unknown name|Invalid/);
  await visit(page, "#/runs");
  await waitForText(page, `${MARKUP}[U+202E]`);
  await page.$$eval("table.runs button", (all) => all[0].click());
  await page.waitForSelector(".record pre");
  await isText(page, "hostile-runs");

  // Cards of the runs, and addresses with markup.
  await page.$$eval(".card details", (all) => all.forEach((details) => (details.open = true)));
  await waitForText(page, "<script>window.hacked=1</script>");
  await visit(page, "#/tools/!%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E");
  await visit(page, "#/tools/%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E");
  await visit(page, "#/<img src=x onerror=window.hacked=1>/%");
  assert.equal(await page.evaluate(() => window.hacked), undefined);

  // A line of 10 MB, as a result and in the log.
  for (const tool of ["huge", "huge-log"]) {
    await visit(page, `#/tools/${tool}`);
    const frames = await watchFrames(page);
    await click(page, "button", "Run");
    await waitForText(page, "Succeeded after");
    await waitForText(page, "xxxx", tool === "huge" ? "pre.text" : "pre.log");
    const gap = await frames();
    console.log(`${tool}: ${gap} ms`);
    assert.ok(gap < 2000, `${tool}: the page answers`);
    assert.ok((await page.$$eval("pre", (all) => all.reduce((sum, pre) => sum + pre.textContent.length, 0))) < 300_000);
  }
  nothingHappened(page);
} finally {
  await browser.close();
}
