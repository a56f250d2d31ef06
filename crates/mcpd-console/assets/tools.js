/** Tools: a list with a search, what is not served and why, and a form that calls a tool. */

import { block, counted, facts, fill, h, jsonText, prose } from "./dom.js";
import { appOf } from "./apps.js";
import { caller, setKnownTools, short } from "./call.js";
import { choice } from "./choice.js";
import { callLine, command, curlLine } from "./commands.js";
import { form } from "./form.js";
import { skillDetail } from "./skills.js";
import { api, list } from "./session.js";

/** Arguments of a run that is to be made again, and the names of those that the log does not have,
 * by the path of its tool. */
/** @type {Map<string, {values: any, missing: string[]}>} */
export const again = new Map();

/**
 * @param {any} tool
 * @returns {string}
 */
const pathOf = (tool) => tool._meta?.["mcpd/path"] ?? tool.name;
/**
 * @param {any} tool
 * @returns {string[]}
 */
const tagsOf = (tool) => (Array.isArray(tool._meta?.["mcpd/tags"]) ? tool._meta["mcpd/tags"].map(String) : []);

/**
 * @param {any} about
 * @param {string} chosen path of a tool, or of a file after `!`
 */
export async function toolsView(about, chosen) {
  const { tools, catalog, files, viewpoints } = await read(about);
  if (!seenAs) setKnownTools(tools);
  /** @type {Map<string, any>} */
  const extra = new Map(catalog.tools.map((/** @type {any} */ tool) => [tool.path, tool]));
  const paths = new Set(tools.map(pathOf));
  const isOfTool = (/** @type {any} */ fault) => fault.severity !== "error" && paths.has(fault.path);
  const faults = catalog.faults ?? [];
  const remarks = groupByPath(faults.filter(isOfTool));
  // What is not served is seen as oneself only.
  const missing = seenAs ? [] : notServed(faults.filter((/** @type {any} */ fault) => !isOfTool(fault)), files.files, about.roots ?? []);
  const detail = h("div", { className: "detail" });
  const skills = catalog.skills ?? [];
  const side = sidebar({ tools, missing, remarks, skills, viewpoints }, chosen);
  const element = h("div", { className: chosen ? "split has-choice" : "split" }, side, detail);
  /** @type {(() => void) | undefined} */
  let leave;
  if (chosen.startsWith("skill://")) {
    const one = skills.find((/** @type {any} */ skill) => skill.uri === chosen);
    fill(detail, one ? skillDetail(one) : gone("There is no such skill now."));
  } else if (chosen.startsWith("!")) {
    const one = missing.find((entry) => entry.key === chosen.slice(1));
    fill(detail, one ? missingDetail(one) : gone("This file is served now, or is gone."));
  } else if (chosen) {
    const tool = tools.find((entry) => pathOf(entry) === chosen || entry.name === chosen);
    if (tool) {
      const view = toolDetail(about, tool, extra.get(pathOf(tool)) ?? {}, remarks.get(pathOf(tool)) ?? []);
      fill(detail, seenAs ? seenAsOther(tool) : null, view.element);
      leave = view.leave;
    } else fill(detail, gone("There is no such tool now."));
  } else fill(detail, welcome(about, tools, catalog, missing));
  return { element, title: chosen ? chosen.replace(/^!/, "") : "Tools", leave };
}

/**
 * @param {any[]} faults
 * @returns {Map<string, any[]>}
 */
function groupByPath(faults) {
  const groups = new Map();
  for (const fault of faults) groups.set(fault.path, [...(groups.get(fault.path) ?? []), fault]);
  return groups;
}

/** Caller or profile as which the tools are seen, such as `caller:team-a`; nothing for oneself. */
let seenAs = "";

/** @param {string} viewpoint */
const nameOf = (viewpoint) => viewpoint.replace(":", " ");

/** @param {any} tool */
function seenAsOther(tool) {
  return h("p", { className: "notice" }, `You see the definition of ${tool.name} as ${nameOf(seenAs)}. Calls are made as yourself only, so there is no form here.`);
}

/**
 * A choice of the caller as which the tools are seen, for operators.
 * @param {any} viewpoints
 */
function viewpointChoice(viewpoints) {
  if (!viewpoints || viewpoints.callers.length + viewpoints.profiles.length === 0) return null;
  const select = h("select", { id: "as", onchange: choose },
    h("option", { value: "" }, "Seen as yourself"),
    ["caller", "profile"].map((kind) => viewpoints[`${kind}s`].map((/** @type {string} */ name) => h("option", { value: `${kind}:${name}` }, `Seen as ${kind} ${name}`))).flat());
  select.value = seenAs;
  function choose() {
    seenAs = select.value;
    last = undefined;
    window.dispatchEvent(new Event("hashchange"));
  }
  return h("div", {}, h("label", { for: "as", className: "visually-hidden" }, "Seen as"), select,
    seenAs ? h("p", { className: "hint" }, "The list is that of another; calls are not made as it.") : null);
}

/** Rows of a list that are shown at once. */
const ROWS = 300;

/** Time for which what was read is shown again, in milliseconds. */
const LIFETIME = 5000;
/** @type {{caller: string, time: number, read: Promise<{tools: any[], catalog: any, files: any, viewpoints: any}>} | undefined} */
let last;

/**
 * Reads the tools, or takes those of a moment ago.
 * @param {any} about
 */
function read(about) {
  if (!last || last.caller !== about.caller || Date.now() - last.time > LIFETIME) {
    const all = Promise.all([seenAs ? [] : list("tools/list", "tools"), api("catalog", { as: seenAs }), about.operator ? api("files") : { files: [] }, about.operator ? api("viewpoints") : undefined]);
    const mine = { caller: about.caller, time: Date.now(), read: all.then(([tools, catalog, files, viewpoints]) => ({ tools: catalog.list ?? tools, catalog, files, viewpoints })) };
    all.catch(() => (seenAs = ""));
    mine.read.catch(() => (last = last === mine ? undefined : last));
    last = mine;
  }
  return last.read;
}

/** @param {string} text */
function gone(text) {
  return h("div", {}, h("h1", { tabIndex: -1 }, "Not found"), h("p", {}, text), h("p", {}, h("a", { href: "#/tools" }, "All tools")));
}

/**
 * @typedef {object} Missing
 * @property {string} key
 * @property {string} name
 * @property {string} status
 * @property {string} [reason]
 * @property {any[]} faults
 */

/**
 * What is not served, and served things with faults: those that are wrong first.
 * @param {any[]} faults
 * @param {any[]} files
 * @param {string[]} roots
 * @returns {Missing[]}
 */
function notServed(faults, files, roots) {
  const below = (/** @type {string} */ file) => {
    const root = roots.find((one) => file.startsWith(`${one}/`));
    return root ? file.slice(root.length + 1) : file;
  };
  /** @type {Map<string, Missing>} */
  const entries = new Map();
  for (const fault of faults) {
    const key = fault.file ?? fault.path ?? "server";
    /** @type {Missing} */
    const entry = entries.get(key) ?? { key, name: fault.path ?? below(key), status: "warning", faults: [] };
    entry.faults.push(fault);
    if (fault.severity === "error") entry.status = "faulty";
    entries.set(key, entry);
  }
  for (const { file, status, reason } of files) {
    /** @type {Missing} */
    const entry = entries.get(file) ?? { key: file, name: below(file), status, faults: [] };
    if (entry.status === "warning") entry.status = status;
    entry.reason = reason;
    entries.set(file, entry);
  }
  const order = ["faulty", "held-back", "warning", "passed-over", "ignored"];
  const rank = (/** @type {Missing} */ entry) => order.indexOf(entry.status);
  return [...entries.values()].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

/**
 * @param {{tools: any[], missing: Missing[], remarks: Map<string, any[]>, skills: any[], viewpoints: any}} shown
 * @param {string} chosen
 */
function sidebar({ tools, missing, remarks, skills, viewpoints }, chosen) {
  const search = h("input", { type: "search", id: "search", placeholder: "Search (press /)", autocomplete: "off", spellcheck: false, value: kept.text, oninput: filter });
  const counts = new Map();
  for (const tag of tools.flatMap(tagsOf)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const tags = [...counts.keys()].sort();
  const tag = choice("tag", "Tag", "All tags", filter);
  tag.offer(tags.map((tag) => [tag, `${tag} (${counts.get(tag)})`]), counts.has(kept.tag) ? kept.tag : "");
  const rows = tools.map((tool) => {
    const path = pathOf(tool);
    const row = () => h("li", {}, h("a", { href: `#/tools/${encodeURIComponent(path)}`, "aria-current": path === chosen ? "page" : undefined },
      h("span", { className: "name" }, path),
      remarks.has(path) ? h("span", { className: "badge warning" }, counted(remarks.get(path)?.length ?? 0, "remark")) : null,
      h("span", { className: "hint" }, short(tool.description ?? tool.title ?? ""))));
    return { row, tags: tagsOf(tool), text: `${path} ${tool.title ?? ""} ${tool.description ?? ""} ${tagsOf(tool).join(" ")}`.toLowerCase() };
  });
  const others = missing.map((entry) => {
    const row = () => h("li", {}, h("a", { href: `#/tools/${encodeURIComponent(`!${entry.key}`)}`, "aria-current": `!${entry.key}` === chosen ? "page" : undefined },
      h("span", { className: "name" }, entry.name),
      h("span", { className: `badge ${entry.status}` }, entry.status.replace("-", " ")),
      h("span", { className: "hint" }, short(entry.reason ?? entry.faults[0]?.message ?? ""))));
    return { row, tags: /** @type {string[]} */ ([]), text: `${entry.key} ${entry.reason ?? ""} ${entry.faults.map((fault) => fault.message).join(" ")}`.toLowerCase() };
  });
  const skillRows = skills.map((skill) => {
    const { name, description } = skill.frontmatter;
    const row = () => h("li", {}, h("a", { href: `#/tools/${encodeURIComponent(skill.uri)}`, "aria-current": skill.uri === chosen ? "page" : undefined },
      h("span", { className: "name" }, String(name)), h("span", { className: "hint" }, short(String(description)))));
    return { row, tags: /** @type {string[]} */ ([]), text: `${skill.uri} ${description}`.toLowerCase() };
  });
  const skillHead = h("h2", {}, "Skills");
  const skillList = h("ul", { className: "list" });
  const count = h("p", { className: "hint", id: "count" });
  const toolList = h("ul", { className: "list" });
  const otherList = h("ul", { className: "list" });
  const more = h("button", { type: "button", className: "quiet", onclick: () => { limit += ROWS; filter(); } });
  let limit = Math.max(ROWS, tools.findIndex((tool) => pathOf(tool) === chosen) + 20);
  const otherHead = h("h2", {}, "Not served");
  function filter() {
    kept.text = search.value;
    kept.tag = tag.value();
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isShown = (/** @type {typeof rows[0]} */ entry) =>
      words.every((word) => entry.text.includes(word)) && (kept.tag === "" || entry.tags.includes(kept.tag));
    const shown = rows.filter(isShown);
    const shownOthers = others.filter(isShown);
    const shownSkills = skillRows.filter(isShown);
    skillHead.hidden = shownSkills.length === 0;
    skillList.replaceChildren(...shownSkills.slice(0, ROWS).map((entry) => entry.row()));
    // A page of thousands of rows would make every key press slow.
    toolList.replaceChildren(...shown.slice(0, limit).map((entry) => entry.row()));
    otherList.replaceChildren(...shownOthers.slice(0, ROWS).map((entry) => entry.row()));
    more.hidden = shown.length <= limit;
    more.textContent = `${(shown.length - limit).toLocaleString()} more`;
    count.textContent = shown.length === rows.length ? counted(rows.length, "tool") : `${shown.length} of ${rows.length} tools`;
    otherHead.hidden = shownOthers.length === 0;
  }
  filter();
  return h("nav", { className: "side", "aria-label": "Tools" },
    h("div", { className: "filters" },
      h("label", { for: "search", className: "visually-hidden" }, "Search tools"), search,
      tag.element, viewpointChoice(viewpoints)),
    count, toolList, more, skillHead, skillList, otherHead, otherList);
}

const kept = { text: "", tag: "" };

/**
 * @param {any} about
 * @param {any[]} tools
 * @param {any} catalog
 * @param {Missing[]} missing
 */
function welcome(about, tools, catalog, missing) {
  const faulty = missing.filter((entry) => entry.status === "faulty").length;
  return h("div", { className: "welcome" },
    h("h1", { tabIndex: -1 }, "Tools"),
    h("p", {}, "This server turns executable scripts into tools that AI clients can call. Choose one on the left to try it: the call takes the way of every client, with the same checks and limits."),
    facts([
      ["Tools", `${tools.length}, about ${catalog.tokens.toLocaleString()} tokens in a list`],
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
    seenAs ? null : [work, call.element],
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
  return { element, leave: () => call.attach(undefined) };
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
