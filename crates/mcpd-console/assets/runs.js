/** Runs: what runs now, what ended lately with its output, and the whole audit log. */

import { cancelOf } from "./call.js";
import { choice } from "./choice.js";
import { add, block, clock, duration, facts, failure, fill, h, say } from "./dom.js";
import { again } from "./tools.js";
import { showResult } from "./result.js";
import { api, request } from "./session.js";

/** Interval between two looks at what runs, in milliseconds. */
const POLL = 1000;

const filter = { tool: "", caller: "", outcome: "", time: "", skip: 0 };

const TIMES = [["hour", "last hour"], ["today", "today"], ["yesterday", "yesterday"], ["week", "last 7 days"]];

/**
 * Bounds of a time that can be chosen. Days are those of the browser.
 * @param {string} time
 * @returns {Record<string, string>}
 */
function bounds(time) {
  const midnight = (/** @type {number} */ ago) => {
    const date = new Date();
    date.setHours(0, 0, 0, 0);
    date.setDate(date.getDate() - ago);
    return date.toISOString();
  };
  switch (time) {
    case "hour":
      return { since: "1h" };
    case "today":
      return { since: midnight(0) };
    case "yesterday":
      return { since: midnight(1), until: midnight(0) };
    case "week":
      return { since: midnight(7) };
    default:
      return {};
  }
}

/**
 * @param {any} about
 * @param {string} chosen id of a record, or number of a live run after `live-`
 */
export async function runsView(about, chosen) {
  const live = h("div");
  const tasks = h("div");
  const past = h("div");
  const element = h("div", { className: "page" },
    h("h1", { tabIndex: -1 }, "Runs"),
    about.operator ? null : h("p", { className: "hint" }, `These are the runs of ${about.caller}.`),
    live, tasks, past);
  let timer = 0;
  let isOver = false;
  const open = new Set(chosen.startsWith("live-") ? [Number(chosen.slice(5))] : []);
  async function poll() {
    try {
      const [{ runs }, background] = await Promise.all([api("live", { open: openNumbers(open) }), api("tasks")]);
      if (isOver) return;
      drawLive(live, about, runs, open);
      drawTasks(tasks, about, background.tasks);
    } catch (error) {
      if (!isOver) fill(live, failure(error));
    }
    clearTimeout(timer);
    if (!isOver) timer = window.setTimeout(poll, document.hidden ? POLL * 5 : POLL);
  }
  pollNow = poll;
  await poll();
  await drawPast(about, past, chosen);
  return { element, title: "Runs", leave: () => { isOver = true; clearTimeout(timer); } };
}

/** @type {Map<number, {element: HTMLElement, state: string, update: (run: any) => void}>} */
let cards = new Map();

/** Looks at what runs at once. */
let pollNow = async () => {};

/**
 * Numbers of the runs whose output is shown.
 * @param {Set<number>} open runs that are open from the start
 */
function openNumbers(open) {
  const isOpen = (/** @type {[number, {element: HTMLElement}]} */ [, card]) => card.element.querySelector("details")?.open;
  const drawn = [...cards].filter(isOpen).map(([number]) => number);
  return [...new Set([...drawn, ...[...open].filter((number) => !cards.has(number))])].join(",");
}

/**
 * The tasks that run in the background.
 * @param {HTMLElement} element
 * @param {any} about
 * @param {any[]} tasks
 */
function drawTasks(element, about, tasks) {
  const open = new Set([...element.querySelectorAll("details[open]")].map((one) => one.id));
  const focused = document.activeElement?.id;
  fill(element, tasks.length ? h("h2", {}, "Background tasks") : null, tasks.map((task) => h("div", { className: "card" },
    h("details", { id: `task-${task.id}`, open: open.has(`task-${task.id}`) },
      h("summary", {}, h("span", { className: "name" }, task.tool), " ", h("span", { className: "badge running" }, "running"), " ", h("span", { className: "hint" }, `since ${clock(task.time)}, ${task.caller}${task.progress ? `, ${task.progress}` : ""}`)),
      task.log ? block(task.log, "Log of the task", "log.txt") : h("p", { className: "hint" }, "It has logged nothing yet.")),
    about.operator || task.caller === about.caller ? h("button", { type: "button", id: `cancel-${task.id}`, "aria-label": `Cancel ${task.tool}`, onclick: (/** @type {Event} */ event) => cancelTask(/** @type {HTMLButtonElement} */ (event.target), about, task) }, "Cancel") : null)));
  if (focused && !element.contains(document.activeElement)) document.getElementById(focused)?.focus();
}

/**
 * Cancels a task: its owner as any client does, an operator as such.
 * @param {HTMLButtonElement} button
 * @param {any} about
 * @param {any} task
 */
function cancelTask(button, about, task) {
  const isOwn = task.caller === about.caller;
  cancelBy(button, () => isOwn ? request("tasks/cancel", { taskId: task.id }, { quiet: true }) : api("cancel", { task: task.id }, "POST"));
}

/**
 * @param {HTMLButtonElement} button
 * @param {() => Promise<unknown>} cancel
 */
async function cancelBy(button, cancel) {
  button.disabled = true;
  try {
    await cancel();
    say("Cancelled");
  } catch (error) {
    button.after(failure(error));
  }
}

/**
 * @param {HTMLElement} element
 * @param {any} about
 * @param {any[]} runs
 * @param {Set<number>} open
 */
function drawLive(element, about, runs, open) {
  if (!element.firstChild) {
    cards = new Map();
    add(element, h("h2", {}, "Now and lately"), h("div", { className: "cards" }), h("p", { className: "hint", hidden: true }, "Nothing has run since the start. Calls appear here while they run, with their output."));
  }
  const [, box, empty] = /** @type {HTMLElement[]} */ ([...element.children]);
  empty.hidden = runs.length > 0;
  const numbers = new Set(runs.map((run) => run.number));
  for (const [number, card] of cards) {
    if (!numbers.has(number)) {
      card.element.remove();
      cards.delete(number);
    }
  }
  runs.forEach((run, at) => {
    let card = cards.get(run.number);
    if (!card) {
      card = liveCard(about, run, open.has(run.number));
      cards.set(run.number, card);
    }
    card.update(run);
    if (box.children[at] !== card.element) box.insertBefore(card.element, box.children[at] ?? null);
  });
}

/**
 * @param {any} about
 * @param {any} first
 * @param {boolean} isOpen
 */
function liveCard(about, first, isOpen) {
  const state = h("span", { className: "badge" });
  const time = h("span", { className: "hint" });
  const body = h("div");
  const name = first.tool ?? first.params?.name ?? first.method;
  const summary = h("summary", {}, h("span", { className: "name" }, name), " ", state, " ", time);
  const details = h("details", { open: isOpen }, summary, body);
  const cancelButton = h("button", { type: "button", hidden: true, "aria-label": `Cancel ${name}`, onclick: cancel }, "Cancel");
  const element = h("div", { className: "card" }, details, cancelButton);
  let drawn = "";
  let latest = first;
  const isOurs = () => latest.client?.startsWith("mcpd-console") && cancelOf(latest.tool) !== undefined;
  function cancel() {
    // The button will be gone.
    summary.focus();
    if (isOurs()) cancelOf(first.tool)?.();
    else cancelBy(cancelButton, () => api("cancel", { run: String(first.number) }, "POST"));
  }
  /** @param {any} run */
  function update(run) {
    latest = run;
    const isRunning = run.state === "running";
    const isCancellable = about.operator || isOurs();
    cancelButton.hidden = !isRunning || !isCancellable;
    state.textContent = run.state;
    state.className = `badge ${run.state}`;
    time.textContent = `${clock(run.time)}, ${duration(run.milliseconds)}, ${run.caller}`;
    const mark = `${run.state} ${run.linesTotal} ${details.open}`;
    if (!details.open || !run.lines || mark === drawn) return;
    drawn = mark;
    fill(body,
      facts([["Method", run.method], ["Client", run.client], ["Trace", run.traceId]]),
      h("h3", {}, "Arguments"), block(JSON.stringify(run.params?.arguments ?? run.params, null, 2), "Arguments", "arguments.json"),
      run.lines.length ? h("h3", {}, `Log${run.linesTotal > run.lines.length ? `, the last ${run.lines.length} of ${run.linesTotal} lines` : ""}`) : null,
      run.lines.length ? block(run.lines.join("\n"), "Log of the run", "log.txt") : null,
      run.result?.content ? [h("h3", {}, "Result"), showResult(run.result)] : null,
      run.result?.error ? failure(run.result.error) : null,
      run.result?.bytes ? h("p", { className: "hint" }, `The result has ${run.result.bytes.toLocaleString()} bytes, and was not kept.`) : null,
      isRunning && !isCancellable ? h("p", { className: "hint" }, "A run ends with its client: cancel it there.") : null,
      run.method === "tools/call" && run.tool ? againButton(run.tool, run.params?.arguments) : null);
  }
  details.addEventListener("toggle", () => {
    drawn = "";
    if (details.open) pollNow();
  });
  return { element, state: first.state, update };
}

/** @param {any} value */
const isDigest = (value) => typeof value?.bytes === "number" && /^[0-9a-f]{64}$/.test(value.sha256) && Object.keys(value).length === 2;

/**
 * Recorded arguments that a call can use again, without those of which the log has only the names
 * or hashes, or whose secrets it leaves out.
 * @param {any} recorded
 * @returns {{values: Record<string, any>, missing: string[]}}
 */
export function reusable(recorded) {
  if (Array.isArray(recorded)) return { values: {}, missing: recorded.map(String) };
  if (isDigest(recorded)) return { values: {}, missing: ["all arguments"] };
  const isMissing = (/** @type {[string, any]} */ [name, value]) => isDigest(value) || /\[redacted( [^\]]*)?\]/.test(name + JSON.stringify(value));
  const entries = Object.entries(recorded ?? {});
  return { values: Object.fromEntries(entries.filter((entry) => !isMissing(entry))), missing: entries.filter(isMissing).map(([name]) => name) };
}

/**
 * @param {string} path
 * @param {any} values
 */
function againButton(path, values) {
  return h("p", {}, h("button", { type: "button", onclick: () => {
    again.set(path, reusable(values));
    location.hash = `#/tools/${encodeURIComponent(path)}`;
  } }, "Again, with changes"));
}

/**
 * @param {any} about
 * @param {HTMLElement} element
 * @param {string} chosen
 */
async function drawPast(about, element, chosen) {
  const heading = h("h2", { id: "past" }, "Log");
  if (!about.audit) {
    fill(element, heading, h("p", { className: "hint" }, "This server keeps no audit log, so earlier runs are unknown."));
    return;
  }
  const results = h("div");
  const tool = h("input", { id: "run-tool", autocomplete: "off", value: filter.tool, onchange: search });
  tool.setAttribute("list", "run-tools");
  const tools = h("datalist", { id: "run-tools" });
  const callers = choice("run-caller", "Caller", "all callers", search);
  const outcomes = choice("run-outcome", "Outcome", "all outcomes", search);
  const times = choice("run-time", "Time", "any time", search);
  times.offer(TIMES, filter.time);
  fill(element, heading,
    h("form", { className: "filters wide", role: "search", "aria-label": "Filter of the log", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); search(); } },
      h("div", {}, h("label", { for: "run-tool" }, "Tool"), tool, tools),
      outcomes.element, about.operator ? callers.element : null, times.element),
    results);
  async function search() {
    Object.assign(filter, { tool: tool.value, caller: callers.value(), outcome: outcomes.value(), time: times.value(), skip: 0 });
    await show();
  }
  let asked = 0;
  async function show() {
    const mine = ++asked;
    const query = { tool: filter.tool, caller: filter.caller, outcome: filter.outcome, ...bounds(filter.time), skip: String(filter.skip) };
    try {
      const found = await api("runs", query);
      // An earlier answer may come late.
      if (mine !== asked) return;
      const named = (/** @type {string[]} */ names) => names.map((name) => [name, name]);
      callers.offer(named(found.callers), filter.caller);
      outcomes.offer([["failed", "not successful"], ...named(found.outcomes)], filter.outcome);
      if (tools.childElementCount !== found.tools.length) fill(tools, found.tools.map((/** @type {string} */ name) => h("option", { value: name })));
      draw(found);
    } catch (error) {
      fill(results, failure(error));
    }
  }
  /** @param {any} found */
  function draw(found) {
    const last = filter.skip + found.runs.length;
    const position = found.total === 0 ? "No runs match." : `${(filter.skip + 1).toLocaleString()} to ${last.toLocaleString()} of ${found.total.toLocaleString()}`;
    const pager = h("div", { className: "bar" },
      h("span", { className: "hint" }, position),
      h("button", { type: "button", disabled: filter.skip === 0, onclick: () => page(-found.runs.length || -100) }, "Newer"),
      h("button", { type: "button", disabled: last >= found.total, onclick: () => page(found.runs.length) }, "Older"),
      h("button", { type: "button", className: "quiet", onclick: show }, "Refresh"));
    const head = ["Time", "Tool", "Outcome", "Duration", "Caller", "Client"];
    const body = h("tbody", {}, found.runs.map(row));
    const list = found.runs.length === 0 ? null : h("div", { className: "scroll" }, h("table", { className: "runs" },
      h("caption", { className: "visually-hidden" }, "Runs in the log, the newest first"),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col", className: text === "Duration" ? "number" : "" }, text)))), body));
    fill(results, pager, list);
    // A run that alone matches is the one that was looked for.
    const opened = found.runs.findIndex((/** @type {any} */ run) => found.total === 1 || run.id === chosen);
    body.rows[opened]?.querySelector("button")?.click();
    say(position);
  }
  /** @param {number} step */
  function page(step) {
    filter.skip = Math.max(0, filter.skip + (step < 0 ? -100 : step));
    show();
  }
  /** @param {any} run */
  function row(run) {
    const cells = h("tr", {},
      h("td", {}, clock(run.time)),
      h("td", {}, h("button", { type: "button", className: "link", "aria-expanded": "false", onclick: toggle }, run.tool || run.method)),
      h("td", {}, h("span", { className: `badge ${run.success ? "succeeded" : "failed"}` }, run.outcome || (run.success ? "success" : "failed"))),
      h("td", { className: "number" }, duration(run.milliseconds)),
      h("td", {}, run.caller),
      h("td", {}, run.client));
    /** @type {HTMLElement | undefined} */
    let detail;
    async function toggle() {
      const button = cells.querySelector("button");
      if (detail) {
        detail.remove();
        detail = undefined;
        button?.setAttribute("aria-expanded", "false");
        return;
      }
      button?.setAttribute("aria-expanded", "true");
      const cell = h("td", { colSpan: 6 }, "…");
      detail = h("tr", { className: "record" }, cell);
      cells.after(detail);
      try {
        fill(cell, record(await api(`runs/${run.id}`)));
      } catch (error) {
        fill(cell, failure(error));
      }
    }
    return cells;
  }
  await show();
}

/** Fields of a record that have a place of their own. */
const SHOWN = ["timestamp", "method", "params", "duration_ms", "success", "error", "event", "principal", "transport", "client", "revision", "tool", "outcome", "queued_ms", "run_ms", "sandbox", "prev", "hash", "seq", "pid"];

/** @param {any} record */
function record(record) {
  const values = record.params?.arguments ?? record.params;
  const rest = Object.entries(record).filter(([name]) => !SHOWN.includes(name));
  return h("div", { className: "detail" },
    record.error ? h("div", {}, h("h3", {}, "Error"), block(String(record.error), "Error of the run")) : null,
    stages(record),
    facts([
      ["Method", record.method],
      ["Caller", record.principal],
      ["Client", [record.client, record.transport, record.revision].filter(Boolean).join(", ")],
      ["Sandbox", record.sandbox],
      ...rest.map(([name, value]) => /** @type {[string, any]} */ ([name.replaceAll("_", " "), typeof value === "string" ? value : JSON.stringify(value)])),
      ["Record", `${record.seq}, ${record.timestamp}`],
    ]),
    h("h3", {}, "Arguments"),
    block(JSON.stringify(values, null, 2) ?? "", "Arguments of the run", "arguments.json"),
    record.method === "tools/call" && record.tool ? againButton(record.tool, record.params?.arguments) : null);
}

/**
 * The stages of the time of a run: in the queue, running, and the rest.
 * @param {any} record
 */
function stages(record) {
  const total = record.duration_ms ?? 0;
  if (record.run_ms === undefined || total === 0) return null;
  const queued = record.queued_ms ?? 0;
  const running = Math.min(record.run_ms, total);
  const parts = /** @type {[string, number][]} */ ([["queued", queued], ["run", running], ["other", Math.max(0, total - queued - running)]]);
  const bar = h("div", { className: "stages", role: "img", "aria-label": parts.map(([name, time]) => `${name} ${duration(time)}`).join(", ") });
  for (const [name, time] of parts) {
    const part = h("span", { className: name });
    part.style.flexGrow = String(time);
    add(bar, part);
  }
  return h("div", {}, bar, h("p", { className: "hint" }, parts.map(([name, time]) => `${name} ${duration(time)}`).join(" · ")));
}
