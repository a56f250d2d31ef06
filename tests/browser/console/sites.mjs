// Another site, on this machine and elsewhere, while the console is open in the same browser.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { launch, open, waitForText } from "./driver.mjs";

const { LINK } = process.env;
const { origin } = new URL(LINK);
const browser = await launch();
/** Cookies that a server on another port of this host gets. */
const stolen = [];
const other = createServer((request, response) => {
  stolen.push(request.headers.cookie ?? "");
  response.setHeader("Content-Type", "text/html");
  response.end("<!doctype html><title>Another site</title><body></body>");
});
await new Promise((done) => other.listen(0, "127.0.0.1", done));
try {
  const page = await open(browser, LINK);
  await waitForText(page, "math/add", ".side");

  // The link again, in another browser: a code opens one session.
  const second = await browser.createBrowserContext();
  const again = await open(second, LINK);
  await waitForText(again, "this link was used already");
  await second.close();

  // A page on another port of the same host is the same site, so it sends the cookie.
  const evil = await browser.newPage();
  await evil.goto(`http://127.0.0.1:${other.address().port}/`);
  const cookie = stolen.find((cookies) => cookies.includes("mcpd_console_"));
  assert.ok(cookie, "a cookie is for a host, not for a port");
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "count", arguments: {}, _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} } } };
  const outcomes = await evil.evaluate(async (origin, body) => {
    const outcomes = {};
    const attempt = async (name, url, options) => {
      try {
        const response = await fetch(origin + url, { credentials: "include", ...options });
        outcomes[name] = response.type === "opaque" ? "unreadable" : response.status;
      } catch {
        outcomes[name] = "blocked";
      }
    };
    const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "count", "Mcpd-Console": "x" };
    await attempt("call", "/mcp", { method: "POST", headers, body });
    await attempt("simple call", "/mcp", { method: "POST", mode: "no-cors", body });
    await attempt("data", "/console/api/about", { headers: { "Mcpd-Console": "x" } });
    await attempt("simple data", "/console/api/about", { mode: "no-cors" });
    await attempt("sign-in", "/console/session", { method: "POST", mode: "no-cors", body: "{}" });
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
  }, origin, JSON.stringify(call));
  outcomes.frame = evil.frames()[1].url();
  const sent = evil.waitForNavigation({ timeout: 20_000 });
  await evil.evaluate((action) => {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action });
    document.body.append(form);
    form.submit();
  }, `${origin}/mcp`);
  await sent;
  outcomes.form = await evil.evaluate(() => document.body.innerText);
  console.log(JSON.stringify(outcomes, null, 2));

  // What the other server got is of no use to it: the cookie alone opens nothing.
  for (const headers of [{ Cookie: cookie }, { Cookie: cookie, "Mcpd-Console": "x" }, { Cookie: cookie, "Mcpd-Console": "" }]) {
    for (const [path, method] of [["/console/api/about", "GET"], ["/console/api/runs", "GET"], ["/mcp", "POST"]]) {
      const response = await fetch(origin + path, { method, headers });
      assert.ok([401, 403].includes(response.status), `${path}: ${response.status}`);
    }
  }

  // The page itself is as before.
  await page.reload();
  await waitForText(page, "math/add", ".side");
} finally {
  await browser.close();
  other.close();
}
