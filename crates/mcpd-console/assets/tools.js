/** Tools: a list with a search, what is not served and why, and a form that calls a tool. */

import { block, counted, facts, failure, fill, h, jsonText, prose } from "./dom.js";
import { appOf } from "./apps.js";
import { caller } from "./call.js";
import { pathOf, readCatalog, renewCatalog, seenAs, tagsOf } from "./catalog.js";
import { callLine, command, curlLine } from "./commands.js";
import { form } from "./form.js";
import { SignedOut } from "./session.js";
import { makeSidebar } from "./sidebar.js";
import { skillDetail } from "./skills.js";

/** Arguments of a run that is to be made again, and the names of those that the log does not have,
 * by the path of its tool. */
/** @type {Map<string, {values: any, missing: string[]}>} */
export const again = new Map();

/** @type {{catalog: Catalog, side: ReturnType<typeof makeSidebar>} | undefined} */
let last;

/** @typedef {import("./catalog.js").Catalog} Catalog */
/** @typedef {import("./catalog.js").Missing} Missing */
/** @typedef {{element: HTMLElement, leave?: () => void, keep?: () => void}} Detail */

/**
 * @param {any} about
 * @param {string} chosen path of a tool, a file after `!`, or the URI of a skill
 */
export async function toolsView(about, chosen) {
  const detail = h("div", { className: "detail" });
  const element = h("div", { className: chosen ? "split has-choice" : "split" });
  let isOver = false;
  let subject = "";
  /** @type {Detail | undefined} */
  let shown;
  /** @param {Catalog} catalog */
  function draw(catalog) {
    if (last?.catalog !== catalog) last = { catalog, side: makeSidebar(catalog) };
    last.side.choose(chosen);
    const before = element.firstElementChild;
    const isSearching = before?.contains(document.activeElement) && document.activeElement?.id === "search";
    const scroll = before?.scrollTop ?? 0;
    element.replaceChildren(last.side.element, detail);
    last.side.element.scrollTop = scroll;
    if (isSearching) /** @type {HTMLElement | null} */ (last.side.element.querySelector("#search"))?.focus();
    // A form keeps its values unless its own tool has changed.
    const next = subjectOf(catalog, chosen);
    if (subject === JSON.stringify(next)) return;
    subject = JSON.stringify(next);
    shown?.keep?.();
    shown?.leave?.();
    const isInside = detail.contains(document.activeElement);
    shown = detailOf(about, next);
    fill(detail, shown.element);
    if (isInside) detail.querySelector("h1")?.focus({ preventScroll: true });
  }
  draw(await readCatalog(about));
  renewCatalog(about).then((next) => {
    if (next && !isOver) draw(next);
  }, (error) => {
    if (isOver) return;
    if (error instanceof SignedOut) window.dispatchEvent(new Event("hashchange"));
    else detail.prepend(failure(error));
  });
  return { element, title: chosen ? chosen.replace(/^!/, "") : "Tools", leave: () => { isOver = true; shown?.leave?.(); } };
}

/**
 * Parts that the detail of a choice is made of.
 * @param {Catalog} catalog
 * @param {string} chosen
 */
function subjectOf({ tools, extra, remarks, missing, skills, tokens }, chosen) {
  if (chosen.startsWith("skill://")) return { kind: "skill", skill: skills.find((skill) => skill.uri === chosen) };
  if (chosen.startsWith("!")) return { kind: "file", file: missing.find((entry) => entry.key === chosen.slice(1)) };
  if (chosen) {
    const tool = tools.find((entry) => pathOf(entry) === chosen || entry.name === chosen);
    return { kind: "tool", tool, extra: tool && extra.get(pathOf(tool)), remarks: tool && remarks.get(pathOf(tool)) };
  }
  return { kind: "all", tools: tools.length, faulty: missing.filter((entry) => entry.status === "faulty").length, tokens };
}

/**
 * @param {any} about
 * @param {any} subject
 * @returns {Detail}
 */
function detailOf(about, subject) {
  switch (subject.kind) {
    case "skill":
      return { element: subject.skill ? skillDetail(subject.skill) : gone("There is no such skill now.") };
    case "file":
      return { element: subject.file ? missingDetail(subject.file) : gone("This file is served now, or is gone.") };
    case "tool":
      return subject.tool ? toolDetail(about, subject.tool, subject.extra ?? {}, subject.remarks ?? []) : { element: gone("There is no such tool now.") };
    default:
      return { element: welcome(about, subject) };
  }
}

/** @param {string} text */
function gone(text) {
  return h("div", {}, h("h1", { tabIndex: -1 }, "Not found"), h("p", {}, text), h("p", {}, h("a", { href: "#/tools" }, "All tools")));
}

/** @param {any} tool */
function seenAsOther(tool) {
  return h("p", { className: "notice" }, `You see the definition of ${tool.name} as ${seenAs().replace(":", " ")}. Calls are made as yourself only, so there is no form here.`);
}

/**
 * @param {any} about
 * @param {any} counts
 */
function welcome(about, { tools, faulty, tokens }) {
  return h("div", { className: "welcome" },
    h("h1", { tabIndex: -1 }, "Tools"),
    h("p", {}, "This server turns executable scripts into tools that AI clients can call. Choose one on the left to try it: the call takes the way of every client, with the same checks and limits."),
    facts([
      ["Tools", `${tools}, about ${tokens.toLocaleString()} tokens in a list`],
      ["Not served", faulty ? `${faulty} with faults` : null],
      ["Directories", about.roots?.length ? about.roots.join(", ") : null],
      ["Endpoint", about.url ? h("code", {}, about.url) : null],
      ["You are", about.caller],
    ]),
    h("p", {}, h("a", { href: "#/connect" }, "Connect a client"), ", or see ", h("a", { href: "#/runs" }, "what has run"), "."));
}

/** @param {Missing} entry */
function missingDetail(entry) {
  return h("article", {},
    h("h1", { tabIndex: -1 }, entry.name),
    h("p", {}, h("span", { className: `badge ${entry.status}` }, entry.status.replace("-", " ")), " ", entry.reason && entry.reason !== entry.faults[0]?.message ? prose(entry.reason) : ""),
    facts([["File", entry.key === entry.name ? null : h("code", {}, entry.key)]]),
    entry.faults.map(showFault));
}

/** @param {any} fault */
function showFault(fault) {
  return h("div", { className: `fault ${fault.severity === "error" ? "error" : "warning"}`, role: "group", "aria-label": fault.code },
      h("h2", {}, h("span", { className: `badge ${fault.severity}` }, fault.severity), " ", prose(fault.message)),
      fault.line ? h("pre", { className: "line", tabIndex: 0, role: "group", "aria-label": "Faulty line" }, fault.line) : null,
      facts([
        ["Place", fault.span ? `line ${fault.span.line}, column ${fault.span.column} of ${fault.stream}` : null],
        ["Help", fault.help ? h("span", {}, prose(fault.help)) : null],
        ["Last words", fault.lastWords ? h("code", {}, fault.lastWords) : null],
        ["Rule", h("code", {}, fault.code)],
      ]));
}

/**
 * @param {any} about
 * @param {any} tool
 * @param {any} extra
 * @param {any[]} remarks
 */
function toolDetail(about, tool, extra, remarks) {
  const path = pathOf(tool);
  const fields = form(tool.inputSchema, () => fromForm());
  /** @type {any} */
  let values = {};
  const editor = h("textarea", { id: "json", className: "code", rows: Object.keys(tool.inputSchema?.properties ?? {}).length ? 8 : 3, spellcheck: false, oninput: fromText, "aria-describedby": "json-fault" });
  const fault = h("p", { className: "hint bad", id: "json-fault", role: "status" });
  const call = caller(path, tool, extra.needsTask === true);
  const runButton = h("button", { type: "submit", className: "primary" }, "Run");
  const cancelButton = h("button", { type: "button", hidden: true, onclick: call.cancel }, "Cancel");
  const curl = command(() => curlLine(about, tool, values), "Command with curl");
  const line = command(() => callLine(about, path, values), "Command with mcpd");

  /** @param {boolean} isRunning */
  function toggle(isRunning) {
    runButton.hidden = isRunning;
    cancelButton.hidden = !isRunning;
    (isRunning ? cancelButton : runButton).focus();
  }
  function fromForm() {
    values = fields.value();
    editor.value = jsonText(values, 2);
    settle("");
  }
  function fromText() {
    try {
      const parsed = JSON.parse(editor.value);
      if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) throw new Error("expected an object");
      values = parsed;
      fields.set(values);
      settle("");
    } catch (error) {
      settle(`Not read: ${error instanceof Error ? error.message : error}`);
    }
  }
  /** @param {string} text */
  function settle(text) {
    fill(fault, text);
    runButton.disabled = text !== "";
    curl.update();
    line.update();
  }
  const earlier = again.get(path);
  again.delete(path);
  if (earlier) fields.set(earlier.values);
  fromForm();
  call.attach({ values: () => values, onStart: () => toggle(true), onEnd: () => toggle(false) });
  runButton.hidden = call.isRunning();
  cancelButton.hidden = !call.isRunning();

  const hasFields = Object.keys(tool.inputSchema?.properties ?? {}).length > 0;
  const work = h("form", { className: "work", "aria-label": `Call ${path}`, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); call.run(); }, onkeydown: shortcut },
    earlier?.missing.length ? h("p", { className: "notice", role: "status" }, `Not in the record. Enter them again: ${earlier.missing.join(", ")}.`) : null,
    h("div", { className: "columns" },
      h("div", { className: "inputs" }, hasFields ? fields.element : h("p", { className: "hint" }, "This tool takes no arguments.")),
      h("div", { className: "json" }, h("label", { for: "json" }, "Arguments as JSON"), editor, fault)),
    h("div", { className: "bar" }, runButton, cancelButton, h("span", { className: "hint" }, "Ctrl+Enter runs, Escape cancels")));
  /** @param {KeyboardEvent} event */
  function shortcut(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!runButton.disabled) call.run();
    } else if (event.key === "Escape" && call.isRunning()) call.cancel();
  }
  const element = h("article", {},
    h("p", { className: "back" }, h("a", { href: "#/tools" }, "All tools")),
    h("h1", { tabIndex: -1 }, path),
    tool.title && tool.title !== path.split("/").pop() ? h("p", { className: "subtitle" }, tool.title) : null,
    tool.description ? h("p", { className: "message" }, tool.description) : null,
    h("p", { className: "badges" }, badges(tool, extra)),
    ...(seenAs() ? [seenAsOther(tool)] : [work, call.element]),
    remarks.length ? h("details", {}, h("summary", {}, `${counted(remarks.length, "remark")} for the author`), remarks.map(showFault)) : null,
    h("details", {}, h("summary", {}, "Call it from a shell"), h("h3", {}, "mcpd"), line.element, h("h3", {}, "curl"), curl.element),
    h("details", {}, h("summary", {}, "Definition, confinement and limits"),
      facts([
        ["Name in lists", h("code", {}, tool.name)],
        ["File", extra.file ? h("code", {}, extra.file) : null],
        ["Source", extra.source],
        ["Cost in a list", extra.tokens ? `about ${extra.tokens.toLocaleString()} tokens` : null],
        ["Run", extra.policy?.length ? h("ul", { className: "plain" }, extra.policy.map((/** @type {string} */ text) => h("li", {}, text))) : null],
      ]),
      block(JSON.stringify(tool, null, 2), "Definition of the tool", "tool.json")));
  return { element, leave: () => call.attach(undefined), keep: () => again.set(path, { values, missing: [] }) };
}

/**
 * @param {any} tool
 * @param {any} extra
 */
function badges(tool, extra) {
  const notes = tool.annotations ?? {};
  const shown = [
    notes.readOnlyHint ? ["ok", "read-only"] : null,
    notes.destructiveHint ? ["faulty", "destructive"] : null,
    notes.idempotentHint ? ["", "idempotent"] : null,
    notes.openWorldHint ? ["", "open world"] : null,
    extra.approval ? ["warning", "asks for approval"] : null,
    appOf(tool) ? ["", "app"] : null,
    ...tagsOf(tool).map((tag) => ["", `#${tag}`]),
  ];
  return shown.flatMap((one) => (one ? [h("span", { className: `badge ${one[0]}` }, one[1])] : []));
}
