/** A call of a tool: its progress and log while it runs, its questions, its result, and its end. */

import { appOf, openApp } from "./apps.js";
import { add, duration, failure, fill, h, say, visible } from "./dom.js";
import { form } from "./form.js";
import { showResult } from "./result.js";
import { parameterHeaders, request } from "./session.js";

/** Log lines that are kept on the page. */
const LINES = 500;
/** Length of a line that is shown, in characters. */
const LINE = 2000;

/** @typedef {{values: () => any, onStart: () => void, onEnd: () => void}} Form */

/** Number of tools whose last call is kept while other views are shown. */
const KEPT = 20;

/** Tools by the names that apps may use: those of the list. */
/** @type {Map<string, any>} */
const known = new Map();

/** @param {any[]} tools */
export function setKnownTools(tools) {
  known.clear();
  for (const tool of tools) {
    known.set(tool.name, tool);
    known.set(tool._meta?.["mcpd/path"] ?? tool.name, tool);
  }
}

/** Last calls, by the paths of their tools. */
/** @type {Map<string, ReturnType<typeof makeCaller>>} */
const callers = new Map();

/**
 * The caller of a tool, with its last call. It goes on while other views are shown.
 * @param {string} path
 * @param {any} tool
 * @param {boolean} needsTask its calls run in the background
 */
export function caller(path, tool, needsTask) {
  const known = callers.get(path);
  if (known?.isRunning()) return known;
  const made = known ?? makeCaller();
  made.setTool(tool, needsTask);
  callers.set(path, made);
  for (const [other, one] of callers) {
    if (callers.size > KEPT && !one.isRunning() && other !== path) {
      one.close();
      callers.delete(other);
    }
  }
  return made;
}

/**
 * Cancels the call of a tool that this page makes, if there is one.
 * @param {string} path
 */
export function cancelOf(path) {
  const known = callers.get(path);
  return known?.isRunning() ? known.cancel : undefined;
}

function makeCaller() {
  /** @type {any} */
  let tool;
  let tasks = false;
  /** @type {Form | undefined} */
  let attached;
  /** @type {AbortController | undefined} */
  let running;
  const state = h("p", { className: "state", "aria-live": "off" });
  const bar = h("progress", { hidden: true, "aria-label": "Progress of the call" });
  const count = h("p", { className: "hint", hidden: true });
  const log = h("pre", { className: "log", tabIndex: 0, role: "log", "aria-live": "off", "aria-label": "Log of the call", hidden: true });
  const questions = h("div");
  const output = h("div");
  const apps = h("div");
  /** @type {ReturnType<typeof openApp> | undefined} */
  let app;
  const heading = h("h2", { className: "visually-hidden", tabIndex: -1 }, "Outcome");
  const element = h("section", { className: "outcome", "aria-label": "Outcome of the call" }, heading, state, bar, questions, log, count, apps, output);

  /** @type {{text: string, level: string}[]} */
  let pending = [];
  let isDrawing = false;
  let total = 0;
  /** @param {string} level @param {string} text */
  function line(level, text) {
    total += 1;
    pending.push({ level, text: text.length > LINE ? `${text.slice(0, LINE)}…` : text });
    if (pending.length > LINES) pending = pending.slice(-LINES);
    if (!isDrawing) {
      isDrawing = true;
      requestAnimationFrame(draw);
    }
  }
  function draw() {
    isDrawing = false;
    const isAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
    log.hidden = false;
    for (const { level, text } of pending) add(log, h("span", { className: `level-${level}` }, `${text}\n`));
    pending = [];
    while (log.childElementCount > LINES) log.firstElementChild?.remove();
    count.hidden = total <= LINES;
    count.textContent = `The last ${LINES} of ${total.toLocaleString()} lines.`;
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  /** @param {any} message */
  function onNotification({ method, params }) {
    if (method === "notifications/progress") {
      bar.hidden = false;
      if (params.total) {
        bar.max = params.total;
        bar.value = params.progress;
      } else bar.removeAttribute("value");
      if (params.message) line("progress", String(params.message));
    } else if (method === "notifications/message") {
      const data = params.data;
      line(levelOf(params.level), typeof data === "string" ? data : JSON.stringify(data));
    }
  }

  async function run() {
    if (running) return;
    const mine = new AbortController();
    running = mine;
    const began = performance.now();
    fill(log);
    fill(output);
    fill(questions);
    log.hidden = true;
    count.hidden = true;
    total = 0;
    bar.hidden = false;
    bar.removeAttribute("value");
    state.className = "state running";
    attached?.onStart();
    const given = attached?.values() ?? {};
    app?.close();
    app = undefined;
    fill(apps);
    const page = appOf(tool);
    if (page) {
      app = openApp(tool, page, given, (name) => known.get(name));
      add(apps, app.element);
    }
    say("The call runs.");
    const timer = setInterval(() => (state.textContent = `Runs for ${duration(performance.now() - began)}`), 100);
    try {
      const { result, text } = await answered(given, mine);
      const isFailed = result?.isError === true;
      end(isFailed ? "failed" : "succeeded", `${isFailed ? "Failed" : "Succeeded"} after ${duration(performance.now() - began)}`);
      add(output, showResult(result, text));
      app?.finish(result);
    } catch (error) {
      app?.cancel(mine.signal.aborted ? "cancelled" : "failed");
      if (mine.signal.aborted) end("cancelled", `Cancelled after ${duration(performance.now() - began)}`);
      else {
        end("failed", `Failed after ${duration(performance.now() - began)}`);
        add(output, failure(error));
      }
    } finally {
      clearInterval(timer);
      running = undefined;
      attached?.onEnd();
    }
  }

  /** @param {string} kind @param {string} text */
  function end(kind, text) {
    bar.hidden = true;
    fill(questions);
    state.className = `state ${kind}`;
    state.textContent = text;
    say(text);
  }

  /**
   * Calls, and asks the questions of the script or of the server until there is a result.
   * @param {any} given
   * @param {AbortController} mine
   */
  async function answered(given, mine) {
    /** @type {Record<string, any>} */
    let more = {};
    for (;;) {
      const params = { name: tool.name, arguments: given, ...more };
      const headers = parameterHeaders(tool.inputSchema, given);
      const answer = await request("tools/call", params, { onNotification, signal: mine.signal, headers, tasks });
      if (answer.result?.resultType === "task") return outcomeOf(answer.result, mine.signal);
      if (answer.result?.resultType !== "input_required") return answer;
      /** @type {Record<string, any>} */
      const inputResponses = {};
      for (const [key, question] of Object.entries(answer.result.inputRequests ?? {})) {
        inputResponses[key] = await ask(question, mine.signal);
      }
      more = { inputResponses };
      if (answer.result.requestState !== undefined) more.requestState = answer.result.requestState;
    }
  }

  /**
   * Follows a task until it ends, and asks its questions. Cancelling the call ends the task.
   * @param {any} task
   * @param {AbortSignal} signal
   */
  async function outcomeOf(task, signal) {
    const which = { taskId: task.taskId };
    signal.addEventListener("abort", () => request("tasks/cancel", which, { quiet: true }).catch(() => {}));
    line("info", `The call is a task, and goes on without this page: ${task.taskId}`);
    let told = "";
    for (;;) {
      const { result, text } = await request("tasks/get", which, { signal, quiet: true });
      const { status, statusMessage = "", inputRequests = {}, pollIntervalMs = 1000 } = result;
      if (statusMessage !== told) line("progress", statusMessage);
      told = statusMessage;
      if (status === "completed") return { result: result.result, text };
      if (status === "failed") throw new Error(`${result.error.message} (error ${result.error.code})`);
      if (status === "cancelled") throw new Error("The task was cancelled.");
      for (const [key, question] of Object.entries(inputRequests)) {
        await request("tasks/update", { ...which, inputResponses: { [key]: await ask(question, signal) } }, { signal, quiet: true });
      }
      await new Promise((done, stop) => {
        setTimeout(done, pollIntervalMs);
        signal.addEventListener("abort", () => stop(new Error("cancelled")));
      });
    }
  }

  /**
   * @param {any} question
   * @param {AbortSignal} signal
   * @returns {Promise<any>}
   */
  function ask(question, signal) {
    const { method, params } = question;
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("cancelled")));
      if (method !== "elicitation/create") {
        reject(new Error(`The script asks by ${method}, which the console can't answer; try it with a client that can.`));
        return;
      }
      const fields = form(params.requestedSchema ?? {}, () => {});
      /** @param {string} action */
      const answer = (action) => {
        heading.focus();
        fill(questions);
        resolve(action === "accept" && params.mode !== "url" ? { action, content: fields.value() } : { action });
      };
      const title = h("h3", { tabIndex: -1 }, "A question before the call goes on");
      fill(questions, h("form", { className: "question", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); answer("accept"); } },
        title,
        h("p", { className: "message" }, params.message),
        params.mode === "url" ? h("p", {}, "Open this address yourself, if you trust it: ", h("code", {}, params.url)) : fields.element,
        h("div", { className: "bar" },
          h("button", { type: "submit", className: "primary" }, "Accept"),
          h("button", { type: "button", onclick: () => answer("decline") }, "Decline"))));
      title.focus();
      say("A question before the call goes on");
    });
  }

  return {
    element,
    run,
    cancel: () => running?.abort(),
    close: () => app?.close(),
    isRunning: () => running !== undefined,
    setTool: (/** @type {any} */ next, /** @type {boolean} */ needsTask) => {
      tool = next;
      tasks = needsTask;
    },
    attach: (/** @type {Form | undefined} */ next) => (attached = next),
  };
}

/** @param {unknown} level */
function levelOf(level) {
  const levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
  return levels.includes(String(level)) ? String(level) : "info";
}

/** @param {string} text */
export function short(text, length = 120) {
  const line = visible(text.split("\n")[0]);
  return line.length > length ? `${line.slice(0, length)}…` : line;
}
