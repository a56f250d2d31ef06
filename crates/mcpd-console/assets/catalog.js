/**
 * Catalog as the page knows it. Each view shows what is known at once, and reads it anew in the
 * background.
 */

import { setKnownTools } from "./call.js";
import { api, list, SignedOut } from "./session.js";

/** Age from which the catalog is read anew, in milliseconds. */
const LIFETIME = 5000;

/** @typedef {{key: string, name: string, status: string, reason?: string, faults: any[]}} Missing */
/**
 * @typedef {object} Catalog
 * @property {any[]} tools
 * @property {Map<string, any>} extra what MCP has no method for, by path
 * @property {Map<string, any[]>} remarks by path
 * @property {Missing[]} missing
 * @property {any[]} skills
 * @property {any} viewpoints
 * @property {number} tokens
 */

/** @typedef {{key: string, time: number, mark: string, catalog: Catalog}} Known */
/** @type {Known | undefined} */
let known;
/** @type {{key: string, read: Promise<Known>} | undefined} */
let reading;

/** Caller or profile as which the tools are seen, such as `caller:team-a`; nothing for oneself. */
let viewpoint = "";

export const seenAs = () => viewpoint;

/** @param {string} next */
export function setSeenAs(next) {
  viewpoint = next;
}

/**
 * @param {any} tool
 * @returns {string}
 */
export const pathOf = (tool) => tool._meta?.["mcpd/path"] ?? tool.name;

/**
 * @param {any} tool
 * @returns {string[]}
 */
export const tagsOf = (tool) => (Array.isArray(tool._meta?.["mcpd/tags"]) ? tool._meta["mcpd/tags"].map(String) : []);

/** @param {any} about */
const keyOf = (about) => JSON.stringify([about.caller, viewpoint]);

/**
 * The catalog that is known, or the first one.
 * @param {any} about
 */
export async function readCatalog(about) {
  return known?.key === keyOf(about) ? known.catalog : (await load(about)).catalog;
}

/**
 * Reads the catalog anew if it is old, and returns it if it has changed.
 * @param {any} about
 */
export async function renewCatalog(about) {
  if (known?.key === keyOf(about) && Date.now() - known.time < LIFETIME) return undefined;
  const before = known?.catalog;
  const { catalog } = await load(about);
  return catalog === before ? undefined : catalog;
}

/**
 * @param {any} about
 * @returns {Promise<Known>}
 */
function load(about) {
  const key = keyOf(about);
  if (reading?.key !== key) {
    const mine = { key, read: fetchCatalog(about, key) };
    reading = mine;
    const end = () => (reading = reading === mine ? undefined : reading);
    mine.read.then(end, end);
  }
  return reading.read;
}

/**
 * @param {any} about
 * @param {string} key
 * @returns {Promise<Known>}
 */
async function fetchCatalog(about, key) {
  const as = viewpoint;
  try {
    const read = await Promise.all([as ? [] : list("tools/list", "tools"), api("catalog", { as }), about.operator ? api("files") : { files: [] }, about.operator ? api("viewpoints") : undefined]);
    const mark = JSON.stringify(read);
    const isSame = known?.key === key && known.mark === mark;
    const next = { key, time: Date.now(), mark, catalog: isSame && known ? known.catalog : arrange(about, as, read) };
    if (!as) setKnownTools(next.catalog.tools);
    if (key === keyOf(about)) known = next;
    return next;
  } catch (error) {
    // A viewpoint may be gone, and so may the session.
    if (as === viewpoint) viewpoint = "";
    if (error instanceof SignedOut) known = undefined;
    throw error;
  }
}

/**
 * @param {any} about
 * @param {string} as
 * @param {any[]} read
 * @returns {Catalog}
 */
function arrange(about, as, [listed, catalog, files, viewpoints]) {
  const tools = catalog.list ?? listed;
  const paths = new Set(tools.map(pathOf));
  const isOfTool = (/** @type {any} */ fault) => fault.severity !== "error" && paths.has(fault.path);
  const faults = catalog.faults ?? [];
  return {
    tools,
    extra: new Map(catalog.tools.map((/** @type {any} */ tool) => [tool.path, tool])),
    remarks: groupByPath(faults.filter(isOfTool)),
    // Files that are not served are seen as oneself only.
    missing: as ? [] : notServed(faults.filter((/** @type {any} */ fault) => !isOfTool(fault)), files.files, about.roots ?? []),
    skills: catalog.skills ?? [],
    viewpoints,
    tokens: catalog.tokens,
  };
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

/**
 * Files that are not served, and served things with faults: those that are wrong first.
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
