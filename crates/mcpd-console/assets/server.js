/** Server: its state, the last hour, sources, configuration and the proof of the audit log. */

import { chart, histogram, level, rate } from "./charts.js";
import { block, bytes, counted, facts, failure, fill, h, say, table } from "./dom.js";
import { api } from "./session.js";

/** Reports that the program may offer, and how they are shown. */
const REPORTS = {
  cluster: { title: "Cluster", hint: "Nodes, what they run, and scripts of which they have different versions, as mcpd cluster status shows them. It takes two seconds.", act: "Ask the nodes", label: "Nodes of the cluster" },
  doctor: { title: "Machine", hint: "What mcpd doctor finds: sandbox levels, limits and interpreters. It takes some seconds.", act: "Examine this machine", label: "Findings about this machine" },
};

/** Reasons of refusals, as the metrics name them.
 * @type {Record<string, string>} */
const REASONS = { rate: "rate limit", busy: "full queue", source: "host, origin or address", token: "token" };

/** Interval between two looks at the numbers, in milliseconds. */
const POLL = 10_000;

/** @param {any} about */
export async function serverView(about) {
  if (!about.operator) {
    return { element: h("div", { className: "page" }, h("h1", { tabIndex: -1 }, "Server"), h("p", {}, "Only operators of this server see its state: callers with the token that the server made.")), title: "Server" };
  }
  const numbers = h("div");
  const element = h("div", { className: "page" }, h("h1", { tabIndex: -1 }, "Server"), numbers);
  let timer = 0;
  let isOver = false;
  async function poll() {
    try {
      const [server, history] = await Promise.all([api("server"), api("history")]);
      if (!isOver) fill(numbers, state(about, server), charts(server, history.samples), limits(server.limits.callers), sources(server.sources));
    } catch (error) {
      if (!isOver) fill(numbers, failure(error));
    }
    if (!isOver) timer = window.setTimeout(poll, POLL);
  }
  await poll();
  const { settings } = await api("configuration");
  element.append(configuration(settings ?? []), ...Object.entries(REPORTS).filter(([name]) => about.reports?.includes(name)).map(([name, shown]) => reportOf(name, shown)), audit());
  return { element, title: "Server", leave: () => { isOver = true; clearTimeout(timer); } };
}

/**
 * @param {any} about
 * @param {any} server
 */
function state(about, server) {
  const wrong = [
    server.faulty ? counted(server.faulty, "faulty script") : "",
    server.unusable ? counted(server.unusable, "unusable file") : "",
    server.conflicts ? counted(server.conflicts, "name conflict") : "",
    server.audit?.failing ? "the audit log can't be written" : "",
    server.audit?.lost ? `${counted(server.audit.lost, "audit record")} lost` : "",
  ].filter(Boolean);
  return h("section", { "aria-label": "State" },
    h("p", {}, wrong.length
      ? [h("span", { className: "badge warning" }, "look here"), " ", wrong.join(", "), ". ", h("a", { href: "#/tools" }, "See the tools")]
      : [h("span", { className: "badge ok" }, "healthy"), " Nothing is wrong."]),
    facts([
      ["Version", about.version],
      ["Endpoint", about.url ? h("code", {}, about.url) : null],
      ["Directories", server.roots.join(", ")],
      ["Tools", String(server.tools)],
      ["Prompts", server.prompts ? String(server.prompts) : null],
      ["Resources", server.resources + server.templates ? `${server.resources}, and ${server.templates} templates` : null],
      ["Running", `${server.now.running} of ${server.limits.running}, and ${server.now.queued} of ${server.limits.queued} in the queue`],
      ["Refusals", Object.entries(server.refusals).map(([reason, count]) => `${REASONS[reason] ?? reason} ${count.toLocaleString()}`).join(", ")],
      ["Sessions", `${server.now.sessions} on ${server.now.connections} connections`],
      ["Memory", server.now.memory ? bytes(server.now.memory) : null],
    ]));
}

/**
 * @param {any} server
 * @param {any[]} samples
 */
function charts(server, samples) {
  const all = [...samples, server.now];
  const whole = (/** @type {number} */ value) => (value >= 100 ? Math.round(value).toLocaleString() : String(Math.round(value * 10) / 10));
  const seconds = all.slice(1).map((sample, at) => {
    const calls = sample.calls - all[at].calls;
    return { time: sample.time, value: calls > 0 ? ((sample.seconds - all[at].seconds) / calls) * 1000 : 0 };
  });
  return h("section", { "aria-labelledby": "hour" },
    h("h2", { id: "hour" }, "The last hour"),
    h("div", { className: "panels" },
      chart("Calls a minute", rate(all, "calls"), whole),
      chart("Failures a minute", rate(all, "failures"), whole, "bad"),
      chart("Mean duration", seconds, (value) => `${whole(value)} ms`),
      chart("Running", level(all, "running"), whole),
      chart("In the queue", level(all, "queued"), whole),
      chart("Refusals a minute", rate(all, "refusals"), whole, "bad"),
      chart("Connections", level(all, "connections"), whole),
      chart("Memory", level(all, "memory"), bytes)),
    Object.keys(server.now.latency).length ? [h("h3", {}, "Calls by duration, since the start"), histogram(server.now.latency)] : null);
}

/**
 * Limits of the callers in force.
 * @param {any[]} callers
 */
function limits(callers) {
  return h("section", {}, h("h2", {}, "Limits of callers"),
    table("Limits of callers", ["Caller", "Calls at a time", "Calls a second", "Calls at once"], callers.map((one) => [one.caller,
      String(one.concurrency), one.rate === null ? "no limit" : String(Math.round(one.rate * 1000) / 1000), one.rate === null ? "no limit" : String(one.burst)])));
}

/** @param {any[]} all */
function sources(all) {
  if (!all.length) return null;
  return h("section", {}, h("h2", {}, "Sources"),
    table("Sources", ["Source", "State", "Faults"], all.map((source) => [source.source,
      h("span", { className: `badge ${source.faulty ? "faulty" : source.pending ? "warning" : "ok"}` }, source.faulty ? "faulty" : source.pending ? "connecting" : "connected"),
      source.faults.join("; ")])));
}

/** @param {any[]} settings */
function configuration(settings) {
  const body = h("div");
  const changed = h("input", { type: "checkbox", id: "changed", onchange: draw, checked: true });
  const search = h("input", { type: "search", id: "setting", oninput: draw, autocomplete: "off" });
  function draw() {
    const text = search.value.toLowerCase();
    const shown = settings.filter((setting) => setting.key.toLowerCase().includes(text) && (!changed.checked || setting.origin !== "default"));
    fill(body, shown.length
      ? table("Configuration", ["Key", "Value", "Origin"], shown.map((setting) => [h("code", {}, setting.key), JSON.stringify(setting.value), origin(setting.origin)]))
      : h("p", { className: "hint" }, "No setting matches; all have their defaults."));
  }
  draw();
  return h("section", { "aria-labelledby": "configuration" }, h("h2", { id: "configuration" }, "Configuration"),
    h("div", { className: "filters wide" },
      h("div", {}, h("label", { for: "setting" }, "Key"), search),
      h("div", { className: "check" }, changed, h("label", { for: "changed" }, "Without defaults"))),
    body);
}

/** @param {any} value */
function origin(value) {
  if (typeof value === "string") return value;
  const [, where] = Object.entries(value)[0] ?? ["", ""];
  return [where].flat().join(", line ");
}

/**
 * A report that is made on request.
 * @param {string} name
 * @param {{title: string, hint: string, act: string, label: string}} shown
 */
function reportOf(name, { title, hint, act, label }) {
  const result = h("div", { role: "status" });
  const button = h("button", { type: "button", onclick: make }, act);
  async function make() {
    button.disabled = true;
    fill(result, "Please wait…");
    try {
      const { report } = await api(`report/${name}`);
      fill(result, block(report, label, `${name}.txt`));
      say(label);
    } catch (error) {
      fill(result, failure(error));
    }
    button.disabled = false;
  }
  return h("section", { "aria-labelledby": name }, h("h2", { id: name }, title), h("p", { className: "hint" }, hint), button, result);
}

function audit() {
  const result = h("div", { role: "status" });
  const button = h("button", { type: "button", onclick: verify }, "Verify the audit log");
  async function verify() {
    button.disabled = true;
    fill(result, "Verifying…");
    try {
      const verified = await api("verify");
      fill(result,
        h("p", {}, h("span", { className: `badge ${verified.faults.length ? "faulty" : "ok"}` }, verified.faults.length ? "changed" : "intact"),
          ` ${verified.records.toLocaleString()} records`, verified.records ? `, ${verified.first} to ${verified.last}` : ""),
        verified.hash ? facts([["Hash of the last record", h("code", {}, verified.hash)]]) : null,
        verified.faults.length ? table("Faults of the log", ["File", "Line", "Fault"], verified.faults.map((/** @type {any} */ fault) => [fault.file, String(fault.line), JSON.stringify(fault.fault)])) : null);
      say(verified.faults.length ? "The log was changed." : "The log is intact.");
    } catch (error) {
      fill(result, failure(error));
    }
    button.disabled = false;
  }
  return h("section", { "aria-labelledby": "audit" }, h("h2", { id: "audit" }, "Audit log"),
    h("p", { className: "hint" }, "Each record has the hash of the one before it: a change, a gap or a torn end shows."), button, result);
}
