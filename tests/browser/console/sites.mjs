// Another port of this machine, and another site, while the console is open in the same browser.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { click, launch, open, shot, visit, waitForText } from "./driver.mjs";

const { LINK } = process.env;
const { origin } = new URL(LINK);
const browser = await launch(["--host-resolver-rules=MAP evil.example 127.0.0.1"]);
/** Cookies that a server on another port of this host gets. */
const stolen = [];
const other = createServer((request, response) => {
  if (request.url === "/") stolen.push(request.headers.cookie ?? "");
  response.setHeader("Content-Type", "text/html");
  response.end("<!doctype html><title>Another site</title><body></body>");
});
await new Promise((done) => other.listen(0, "127.0.0.1", done));
/** Attempts of a page of another origin, with their outcomes. */
async function attack(url, witness) {
  const evil = await browser.newPage();
  await evil.goto(url);
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "count", arguments: {}, _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } };
  const outcomes = await evil.evaluate(async (origin, body, witness) => {
    const outcomes = {};
    const attempt = async (name, url, options) => {
      try {
        const response = await fetch(origin + url, { credentials: "include", ...options });
        outcomes[name] = response.type === "opaque" ? "unreadable" : response.status;
      } catch {
        outcomes[name] = "blocked";
      }
    };
    if (witness) await fetch(witness, { mode: "no-cors", credentials: "include" });
    const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "count", "Mcpd-Console": "x" };
    await attempt("call", "/mcp", { method: "POST", headers, body });
    await attempt("simple call", "/mcp", { method: "POST", mode: "no-cors", body });
    await attempt("data", "/console/api/about", { headers: { "Mcpd-Console": "x" } });
    await attempt("simple data", "/console/api/about", { mode: "no-cors" });
    await attempt("sign-in", "/console/session", { method: "POST", mode: "no-cors", body: "{}" });
    await attempt("cancel", "/console/api/cancel?run=1", { method: "POST", headers: { "Mcpd-Console": "x" } });
    await attempt("simple cancel", "/console/api/cancel?run=1", { method: "POST", mode: "no-cors" });
    const frame = document.createElement("iframe");
    frame.src = `${origin}/console`;
    document.body.append(frame);
    await new Promise((done) => (frame.onload = frame.onerror = done));
    const script = document.createElement("script");
    script.src = `${origin}/console/api/about`;
    outcomes.script = await new Promise((done) => {
      script.onload = () => done("ran");
      script.onerror = () => done("blocked");
      document.body.append(script);
    });
    outcomes.socket = await new Promise((done) => {
      const socket = new WebSocket(`${origin.replace("http", "ws")}/mcp`);
      socket.onopen = () => done("open");
      socket.onerror = () => done("blocked");
    });
    return outcomes;
  }, origin, JSON.stringify(call), witness);
  outcomes.frame = evil.frames()[1].url();
  for (const path of ["/mcp", "/console/session", "/console/api/cancel?run=1"]) {
    await evil.goto(url);
    const sent = evil.waitForNavigation({ timeout: 20_000 });
    await evil.evaluate((action) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action });
      document.body.append(form);
      form.submit();
    }, origin + path);
    await sent;
    outcomes[`form to ${path}`] = await evil.evaluate(() => document.body.innerText);
  }
  await evil.close();
  return outcomes;
}

try {
  const page = await open(browser, LINK);
  await waitForText(page, "math/add", ".side");

  // The link again, in another browser: a code opens one session.
  const second = await browser.createBrowserContext();
  const again = await open(second, LINK);
  await waitForText(again, "this link was used already");
  await second.close();

  // A call that runs, and must go on.
  await visit(page, "#/tools/slow");
  await click(page, "button", "Run");
  await waitForText(page, "waiting", "pre.log");

  // A page on another port of the same host is of the same site, so it sends the cookie; a page
  // with another name does not.
  const { port } = other.address();
  const attacks = { "other port": await attack(`http://127.0.0.1:${port}/`) };
  const cookie = stolen.find((cookies) => cookies.includes("mcpd_console_"));
  assert.ok(cookie, "a cookie is for a host, not for a port");
  stolen.length = 0;
  attacks["other site"] = await attack(`http://evil.example:${port}/`, `http://127.0.0.1:${port}/`);
  assert.ok(stolen.length >= 2, "the page was read, and fetched something");
  assert.deepEqual(stolen.filter(Boolean), [], "no cookie goes to another site");
  console.log(JSON.stringify(attacks, null, 2));

  // What the other server got is of no use to it: the cookie alone opens nothing.
  for (const headers of [{ Cookie: cookie }, { Cookie: cookie, "Mcpd-Console": "x" }, { Cookie: cookie, "Mcpd-Console": "" }]) {
    for (const [path, method] of [["/console/api/about", "GET"], ["/console/api/runs", "GET"], ["/mcp", "POST"]]) {
      const response = await fetch(origin + path, { method, headers });
      assert.ok([401, 403].includes(response.status), `${path}: ${response.status}`);
    }
  }

  // The page is as before, and its call goes on.
  assert.ok(await page.$("p.state.running"), "nothing was cancelled");
  await shot(page, "call-goes-on");
  await page.reload();
  await waitForText(page, "math/add", ".side");
} finally {
  await browser.close();
  other.close();
}
