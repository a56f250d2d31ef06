/** Sidebar of the tools: a search, tags, and lists of what is served and what is not. */

import { short } from "./call.js";
import { pathOf, seenAs, setSeenAs, tagsOf } from "./catalog.js";
import { choice } from "./choice.js";
import { counted, h } from "./dom.js";

/** Rows of a list that are shown at once: thousands would make every key press slow. */
const ROWS = 300;

/** @typedef {import("./catalog.js").Catalog} Catalog */
/** @typedef {{key: string, tags: string[], text: string, row: () => HTMLElement}} Entry */

/** Search and tag, for as long as the page lives. */
const kept = { text: "", tag: "" };

/**
 * @param {Catalog} catalog
 */
export function makeSidebar({ tools, missing, remarks, skills, viewpoints }) {
  const search = h("input", { type: "search", id: "search", placeholder: "Search (press /)", autocomplete: "off", spellcheck: false, value: kept.text, oninput: filter });
  const counts = new Map();
  for (const tag of tools.flatMap(tagsOf)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  const tag = choice("tag", "Tag", "All tags", filter);
  tag.offer([...counts.keys()].sort().map((one) => [one, `${one} (${counts.get(one)})`]), counts.has(kept.tag) ? kept.tag : "");
  const count = h("p", { className: "hint", id: "count" });
  const sections = [
    section("", tools.map((tool) => toolEntry(tool, remarks.get(pathOf(tool))?.length ?? 0))),
    section("Skills", skills.map(skillEntry)),
    section("Not served", missing.map(missingEntry)),
  ];
  let chosen = "";
  function filter() {
    kept.text = search.value;
    kept.tag = tag.value();
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isShown = (/** @type {Entry} */ entry) =>
      words.every((word) => entry.text.includes(word)) && (kept.tag === "" || entry.tags.includes(kept.tag));
    const [found] = sections.map((one) => one.filter(isShown, chosen));
    count.textContent = found === tools.length ? counted(tools.length, "tool") : `${found} of ${tools.length} tools`;
  }
  const element = h("nav", { className: "side", "aria-label": "Tools" },
    h("div", { className: "filters" },
      h("label", { for: "search", className: "visually-hidden" }, "Search tools"), search,
      tag.element, viewpointChoice(viewpoints)),
    count, sections.flatMap((one) => one.elements));
  filter();
  return {
    element,
    /** @param {string} next what is chosen: a path, a file after `!`, or the URI of a skill */
    choose(next) {
      chosen = next;
      for (const one of sections) one.choose(chosen);
    },
  };
}

/**
 * A list of which a part is shown: the one around what is chosen, with buttons to move it.
 * @param {string} title
 * @param {Entry[]} entries
 */
function section(title, entries) {
  const head = title ? h("h2", {}, title) : null;
  const list = h("ul", { className: "list" });
  const earlier = h("button", { type: "button", className: "quiet", onclick: () => move(-ROWS) });
  const later = h("button", { type: "button", className: "quiet", onclick: () => move(ROWS) });
  let shown = entries;
  let first = 0;
  let current = "";
  function draw() {
    first = Math.max(0, Math.min(first, shown.length - ROWS));
    list.replaceChildren(...shown.slice(first, first + ROWS).map((entry) => entry.row()));
    earlier.hidden = first === 0;
    earlier.textContent = `${first.toLocaleString()} before these`;
    later.hidden = first + ROWS >= shown.length;
    later.textContent = `${(shown.length - first - ROWS).toLocaleString()} more`;
    if (head) head.hidden = shown.length === 0;
    mark();
  }
  function mark() {
    const wanted = hrefOf(current);
    for (const link of list.querySelectorAll("a")) {
      if (link.getAttribute("href") === wanted) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
  /** @param {number} step */
  function move(step) {
    first += step;
    draw();
    list.querySelector("a")?.focus();
  }
  /** Moves the part that is shown to what is chosen, if it is elsewhere. */
  function find() {
    const at = shown.findIndex((entry) => entry.key === current);
    if (at < 0 || (at >= first && at < first + ROWS)) return false;
    first = at - Math.floor(ROWS / 2);
    return true;
  }
  return {
    elements: [head, earlier, list, later],
    /** @param {(entry: Entry) => boolean} isShown @param {string} chosen */
    filter(isShown, chosen) {
      shown = entries.filter(isShown);
      current = chosen;
      first = 0;
      find();
      draw();
      return shown.length;
    },
    /** @param {string} chosen */
    choose(chosen) {
      current = chosen;
      if (find()) draw();
      else mark();
    },
  };
}

/** @param {string} key */
const hrefOf = (key) => `#/tools/${encodeURIComponent(key)}`;

/**
 * @param {string} key
 * @param {...import("./dom.js").Child} content
 */
const row = (key, ...content) => h("li", {}, h("a", { href: hrefOf(key) }, ...content));

/**
 * @param {any} tool
 * @param {number} remarks
 * @returns {Entry}
 */
function toolEntry(tool, remarks) {
  const key = pathOf(tool);
  const tags = tagsOf(tool);
  return {
    key,
    tags,
    text: `${key} ${tool.title ?? ""} ${tool.description ?? ""} ${tags.join(" ")}`.toLowerCase(),
    row: () => row(key, h("span", { className: "name" }, key),
      remarks ? h("span", { className: "badge warning" }, counted(remarks, "remark")) : null,
      h("span", { className: "hint" }, short(tool.description ?? tool.title ?? ""))),
  };
}

/**
 * @param {import("./catalog.js").Missing} entry
 * @returns {Entry}
 */
function missingEntry({ key, name, status, reason, faults }) {
  return {
    key: `!${key}`,
    tags: [],
    text: `${key} ${reason ?? ""} ${faults.map((fault) => fault.message).join(" ")}`.toLowerCase(),
    row: () => row(`!${key}`, h("span", { className: "name" }, name),
      h("span", { className: `badge ${status}` }, status.replace("-", " ")),
      h("span", { className: "hint" }, short(reason ?? faults[0]?.message ?? ""))),
  };
}

/**
 * @param {any} skill
 * @returns {Entry}
 */
function skillEntry(skill) {
  const { name, description } = skill.frontmatter;
  return {
    key: skill.uri,
    tags: [],
    text: `${skill.uri} ${description}`.toLowerCase(),
    row: () => row(skill.uri, h("span", { className: "name" }, String(name)), h("span", { className: "hint" }, short(String(description)))),
  };
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
  select.value = seenAs();
  function choose() {
    setSeenAs(select.value);
    window.dispatchEvent(new Event("hashchange"));
  }
  return h("div", {}, h("label", { for: "as", className: "visually-hidden" }, "Seen as"), select,
    seenAs() ? h("p", { className: "hint" }, "The list is that of another; calls are not made as it.") : null);
}
