/**
 * Apps of tools (MCP Apps): a page of the tool's author in a frame of no origin. It reaches the
 * server only through here, with the rights of the caller, and only after a question.
 */

import { add, block, failure, fill, h, prose, say, visible } from "./dom.js";
import { parameterHeaders, request } from "./session.js";

const REVISION = "2026-01-26";
export const APP_TYPE = "text/html;profile=mcp-app";
/** Heights of a frame, in pixels. */
const LOW = 60;
const HIGH = 640;
/** Messages of an app within a second, above which it is closed. */
const FLOOD = 200;
/** Length of the arguments of a call that an app makes, in characters. */
const LONGEST = 1_000_000;

/**
 * The URI of the page of a tool, if it has one.
 * @param {any} tool
 * @returns {string | undefined}
 */
export function appOf(tool) {
  const uri = tool._meta?.ui?.resourceUri;
  return typeof uri === "string" && uri.startsWith("ui://") ? uri : undefined;
}

/**
 * Whether apps may call a tool.
 * @param {any} tool
 */
export function isForApps(tool) {
  const visibility = tool._meta?.ui?.visibility;
  return !Array.isArray(visibility) || visibility.includes("app");
}

/**
 * A frame with the app of a tool, for one call.
 * @param {any} tool
 * @param {string} uri
 * @param {any} given the arguments of the call
 * @param {(name: string) => any} find finds a tool by the name that an app uses
 */
export function openApp(tool, uri, given, find) {
  const frame = h("iframe", { src: "/console/frame", title: visible(`App of ${tool.title ?? tool.name}`), className: "app", referrerPolicy: "no-referrer" });
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("allow", "");
  const notes = h("div");
  const questions = h("div");
  const element = h("section", { className: "app-box", "aria-label": "App of the tool" },
    h("p", { className: "hint" }, "App of the tool, in a frame without rights:"), frame, questions, notes);
  /** @type {any} */
  let ending;
  /** @type {Promise<string>} */
  const html = read(uri, notes);
  let isReady = false;
  let isOpen = true;
  let isAsking = false;
  let count = 0;
  const clock = setInterval(() => (count = 0), 1000);

  /** @param {any} message */
  function send(message) {
    // The frame has no origin that could be named.
    frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }
  /** @param {MessageEvent} event */
  function receive(event) {
    if (event.source !== frame.contentWindow || event.origin !== "null") return;
    count += 1;
    if (count > FLOOD) {
      close("The app sent too many messages, and was closed.");
      return;
    }
    const { id, method, params } = event.data ?? {};
    if (typeof method !== "string") return;
    if (id === undefined) notified(method, params);
    else answer(id, method, params);
  }
  /** @param {string} method @param {any} params */
  function notified(method, params) {
    if (method === "ui/notifications/sandbox-proxy-ready") {
      isReady = false;
      html.then((text) => send({ method: "ui/notifications/sandbox-resource-ready", params: { html: text } }), () => {});
    } else if (method === "ui/notifications/initialized") {
      isReady = true;
      send({ method: "ui/notifications/tool-input", params: { arguments: given } });
      if (ending) send(ending);
    } else if (method === "ui/notifications/size-changed" && Number.isFinite(params?.height)) {
      frame.style.height = `${Math.min(HIGH, Math.max(LOW, params.height))}px`;
    }
  }
  /** @param {any} id @param {string} method @param {any} params */
  async function answer(id, method, params) {
    try {
      send({ id, result: await respond(method, params) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      send({ id, error: { code: error instanceof Unknown ? -32601 : -32000, message } });
    }
  }
  /** @param {string} method @param {any} params */
  async function respond(method, params) {
    switch (method) {
      case "ui/initialize":
        return initialized(tool);
      case "ping":
        return {};
      case "ui/request-display-mode":
        return { mode: "inline" };
      case "tools/call":
        return call(params);
      case "ui/open-link":
      case "ui/message":
      case "ui/update-model-context":
        throw new Error("the console opens no links, and has no conversation");
      default:
        throw new Unknown(`the console does not have ${method}`);
    }
  }
  /** @param {any} params */
  async function call(params) {
    const wanted = find(String(params?.name));
    if (!wanted || !isForApps(wanted)) throw new Error("there is no such tool for apps");
    const values = params.arguments ?? {};
    const text = JSON.stringify(values, null, 2);
    if (text.length > LONGEST) throw new Error("the arguments are too long");
    if (isAsking) throw new Error("another call of the app waits for an answer");
    isAsking = true;
    try {
      if (!(await ask(wanted, text))) throw new Error("the call was refused");
    } finally {
      isAsking = false;
    }
    const headers = parameterHeaders(wanted.inputSchema, values);
    const { result } = await request("tools/call", { name: wanted.name, arguments: values }, { headers });
    if (result?.resultType === "input_required") throw new Error("the tool asks something; call it by itself");
    return result;
  }
  /**
   * @param {any} wanted
   * @param {string} text
   * @returns {Promise<boolean>}
   */
  function ask(wanted, text) {
    return new Promise((resolve) => {
      /** @param {boolean} isAllowed */
      const decide = (isAllowed) => {
        fill(questions);
        resolve(isAllowed);
      };
      const title = h("h3", { tabIndex: -1 }, `The app wants to call ${wanted.name}`);
      fill(questions, h("div", { className: "question" }, title,
        block(text, "Arguments of the call", "arguments.json"),
        h("div", { className: "bar" },
          h("button", { type: "button", className: "primary", onclick: () => decide(true) }, "Allow once"),
          h("button", { type: "button", onclick: () => decide(false) }, "Refuse"))));
      say("The app wants to call a tool");
    });
  }
  /** @param {string} [reason] */
  function close(reason) {
    if (!isOpen) return;
    isOpen = false;
    clearInterval(clock);
    window.removeEventListener("message", receive);
    if (isReady) send({ id: 0, method: "ui/resource-teardown", params: { reason: reason ?? "closed" } });
    frame.remove();
    fill(questions);
    if (reason) add(notes, failure(reason));
  }
  /** @param {any} message */
  function end(message) {
    ending = message;
    if (isReady) send(message);
  }
  window.addEventListener("message", receive);
  return {
    element,
    close,
    finish: (/** @type {any} */ result) => end({ method: "ui/notifications/tool-result", params: result }),
    cancel: (/** @type {string} */ reason) => end({ method: "ui/notifications/tool-cancelled", params: { reason } }),
  };
}

/** A method that the host does not have. */
class Unknown extends Error {}

/** @param {any} tool */
function initialized(tool) {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  return {
    protocolVersion: REVISION,
    hostInfo: { name: "mcpd-console", version: "1" },
    hostCapabilities: { serverTools: {}, sandbox: { permissions: {}, csp: {} } },
    hostContext: {
      toolInfo: { tool },
      theme: isDark ? "dark" : "light",
      displayMode: "inline",
      availableDisplayModes: ["inline"],
      containerDimensions: { maxHeight: HIGH },
      locale: navigator.language,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      platform: "web",
    },
  };
}

/**
 * @param {string} uri
 * @param {HTMLElement} notes
 */
async function read(uri, notes) {
  try {
    const { result } = await request("resources/read", { uri }, { quiet: true });
    const page = result.contents?.[0];
    if (page?.mimeType !== APP_TYPE || typeof page.text !== "string") throw new Error("the app is no page that can be shown");
    const wanted = Object.values(page._meta?.ui?.csp ?? {}).flat().map(String);
    if (wanted.length) add(notes, h("p", { className: "hint" }, prose(`This app asks for \`${visible(wanted.join(", ")).replaceAll("`", "")}\`, which the console does not allow.`)));
    return page.text;
  } catch (error) {
    add(notes, failure(error));
    throw error;
  }
}
