/**
 * Session with the server: sign-in, data of the console, and requests of MCP.
 *
 * The cookie of a session is out of reach for scripts. Each request repeats the key of the page,
 * which no other origin has: both are needed.
 */

const KEY = "mcpd-console-key";
const PROTOCOL = "2026-07-28";
const PREFIX = "io.modelcontextprotocol/";

/** The server wants a sign-in. */
export class SignedOut extends Error {}

/** @returns {Record<string, string>} */
function keyHeader() {
  return { "Mcpd-Console": localStorage.getItem(KEY) ?? "none" };
}

/**
 * Opens a session with the code of a link, or with a token.
 * @param {{code?: string, token?: string}} secret
 */
export async function signIn({ code, token }) {
  /** @type {Record<string, string>} */
  const headers = { ...keyHeader(), "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const body = JSON.stringify(code ? { code } : {});
  const response = await fetch("/console/session", { method: "POST", headers, body });
  if (!response.ok) throw new Error(await response.text());
  const { key } = await response.json();
  localStorage.setItem(KEY, key);
}

export async function signOut() {
  await fetch("/console/session", { method: "DELETE", headers: keyHeader() });
  localStorage.removeItem(KEY);
}

/**
 * Reads data of the console, or changes something.
 * @param {string} path
 * @param {Record<string, string>} [query]
 * @param {"GET" | "POST"} [method]
 * @returns {Promise<any>}
 */
export async function api(path, query = {}, method = "GET") {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const response = await fetch(`/console/api/${path}?${search}`, { method, headers: keyHeader() });
  if (response.status === 401) throw new SignedOut(await response.text());
  const text = await response.text();
  /** @type {any} */
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    throw new Error(text || response.statusText);
  }
  if (!response.ok) throw new Error(body.error ?? response.statusText);
  return body;
}

/**
 * @typedef {object} RequestOptions
 * @property {(message: any) => void} [onNotification]
 * @property {AbortSignal} [signal]
 * @property {Record<string, string>} [headers]
 * @property {boolean} [quiet] no log and no progress
 * @property {boolean} [tasks] the call may become a task
 */

let next = 1;

/**
 * Message of a request, as any client sends it.
 * @param {string} method
 * @param {Record<string, unknown>} params
 * @param {boolean} [quiet]
 * @param {boolean} [tasks]
 */
export function message(method, params, quiet = false, tasks = method.startsWith("tasks/")) {
  const id = next++;
  const extensions = { [`${PREFIX}ui`]: { mimeTypes: ["text/html;profile=mcp-app"] }, ...(tasks ? { [`${PREFIX}tasks`]: {} } : {}) };
  /** @type {Record<string, unknown>} */
  const meta = {
    [`${PREFIX}protocolVersion`]: PROTOCOL,
    [`${PREFIX}clientInfo`]: { name: "mcpd-console", version: "1" },
    [`${PREFIX}clientCapabilities`]: { elicitation: { form: {}, url: {} }, extensions },
  };
  if (!quiet) {
    meta.progressToken = id;
    meta[`${PREFIX}logLevel`] = "debug";
  }
  return { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } };
}

/**
 * Headers that repeat parts of a message.
 * @param {string} method
 * @param {string} [name]
 * @returns {Record<string, string>}
 */
export function headersOf(method, name) {
  /** @type {Record<string, string>} */
  const headers = {
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": PROTOCOL,
    "Mcp-Method": method,
  };
  if (name) headers["Mcp-Name"] = headerText(name);
  return headers;
}

/**
 * Sends a request of MCP, and returns its result with the text that it came in.
 * @param {string} method
 * @param {Record<string, any>} params
 * @param {RequestOptions} [options]
 * @returns {Promise<{result: any, text: string}>}
 */
export async function request(method, params, options = {}) {
  const sent = message(method, params, options.quiet, options.tasks);
  const response = await fetch("/mcp", {
    method: "POST",
    headers: { ...headersOf(method, params.name ?? params.uri ?? params.taskId), ...options.headers, ...keyHeader() },
    body: JSON.stringify(sent),
    signal: options.signal,
  });
  if (response.status === 401) throw new SignedOut(await response.text());
  const type = response.headers.get("Content-Type") ?? "";
  if (type.startsWith("text/event-stream")) {
    for await (const text of events(response)) {
      const received = JSON.parse(text);
      if (received.id === sent.id) return finish(received, text);
      options.onNotification?.(received);
    }
    throw new Error("the connection ended before the result came");
  }
  const text = await response.text();
  if (!type.startsWith("application/json")) throw new Error(text || response.statusText);
  return finish(JSON.parse(text), text);
}

/**
 * @param {any} received
 * @param {string} text
 */
function finish(received, text) {
  if (received.error) throw new Error(`${received.error.message} (error ${received.error.code})`);
  return { result: received.result, text };
}

/**
 * The data of the events of a stream.
 * @param {Response} response
 */
async function* events(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  /** @type {string[]} */
  let rest = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // Only new text is searched, so that a long event costs what its length is.
      const parts = value.split("\n");
      for (let at = 0; at < parts.length; at += 1) {
        rest.push(parts[at]);
        if (at === parts.length - 1) break;
        const line = rest.join("").replace(/\r$/, "");
        rest = [];
        if (line.startsWith("data:")) {
          const text = line.slice(5).trim();
          if (text !== "") yield text;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * All pages of a list.
 * @param {string} method
 * @param {string} member
 * @returns {Promise<any[]>}
 */
export async function list(method, member) {
  /** @type {any[]} */
  const all = [];
  /** @type {string | undefined} */
  let cursor;
  do {
    const { result } = await request(method, cursor ? { cursor } : {}, { quiet: true });
    all.push(...result[member]);
    cursor = result.nextCursor;
  } while (cursor);
  return all;
}

/**
 * Arguments that headers repeat, as the schema of a tool marks them.
 * @param {any} schema
 * @param {any} values
 * @returns {Record<string, string>}
 */
export function parameterHeaders(schema, values) {
  /** @type {Record<string, string>} */
  const headers = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const value = values?.[name];
    const mark = property?.["x-mcp-header"];
    if (mark && ["string", "number", "boolean"].includes(typeof value)) {
      headers[`Mcp-Param-${mark}`] = headerText(String(value));
    }
    Object.assign(headers, parameterHeaders(property, value));
  }
  return headers;
}

/** @param {string} text */
function headerText(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?")) return text;
  const binary = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
  return `=?base64?${btoa(binary)}?=`;
}
