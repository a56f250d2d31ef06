/** Result of a call: its content by type, structured values as tables, and its very text. */

import { add, block, bytes, facts, h, saveButton, table } from "./dom.js";

/** Images that are shown: the first bytes must be those of the type. SVG is shown as text. */
const IMAGES = /** @type {[string, (data: Uint8Array) => boolean][]} */ ([
  ["image/png", (data) => starts(data, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])],
  ["image/jpeg", (data) => starts(data, [0xff, 0xd8, 0xff])],
  ["image/gif", (data) => starts(data, [0x47, 0x49, 0x46, 0x38])],
  ["image/webp", (data) => starts(data, [0x52, 0x49, 0x46, 0x46]) && starts(data.subarray(8), [0x57, 0x45, 0x42, 0x50])],
]);

/** Rows of a table that are shown. */
const ROWS = 500;

/**
 * @param {Uint8Array} data
 * @param {number[]} wanted
 */
function starts(data, wanted) {
  return wanted.every((byte, at) => data[at] === byte);
}

/**
 * @param {any} result
 * @param {string} [text] the message that it came in
 * @param {number} [milliseconds]
 */
export function showResult(result, text, milliseconds) {
  const element = h("div", { className: "result" });
  const content = Array.isArray(result?.content) ? result.content : [];
  const structured = result?.structuredContent;
  if (structured !== undefined) add(element, h("h3", {}, "Structured result"), showValue(structured, "Structured result"));
  const isCopy = (/** @type {any} */ part) => structured !== undefined && part.type === "text" && isJson(part.text, structured);
  const shown = content.filter((/** @type {any} */ part) => !isCopy(part));
  if (structured !== undefined && shown.length) add(element, h("h3", {}, "Content"));
  for (const part of shown) add(element, showPart(part));
  if (!shown.length && structured === undefined) add(element, h("p", { className: "hint" }, "The result is empty."));
  if (text !== undefined) {
    const tokens = estimate(content);
    add(element, h("details", {},
      h("summary", {}, `What the client receives: ${bytes(new Blob([text]).size)}`, tokens ? `, about ${tokens.toLocaleString()} tokens for a model` : "", milliseconds === undefined ? "" : ""),
      block(text, "Message of the server", "result.json")));
  }
  return element;
}

/** @param {any[]} content */
function estimate(content) {
  const characters = content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  return Math.ceil(characters / 4);
}

/**
 * @param {string} text
 * @param {any} value
 */
function isJson(text, value) {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(value);
  } catch {
    return false;
  }
}

/** @param {any} part */
export function showPart(part) {
  switch (part?.type) {
    case "text":
      return block(String(part.text), "Text of the result");
    case "image":
    case "audio":
      return showData(String(part.data), part.mimeType);
    case "resource":
      return part.resource?.text === undefined
        ? h("div", {}, h("p", {}, h("code", {}, part.resource?.uri)), showData(String(part.resource?.blob), part.resource?.mimeType))
        : h("div", {}, h("p", {}, h("code", {}, part.resource?.uri)), block(String(part.resource.text), "Text of a resource"));
    case "resource_link":
      // Not a link of the page: it may lead anywhere, or be code.
      return facts([["Resource", part.title ?? part.name], ["URI", h("code", {}, part.uri)], ["Type", part.mimeType], ["Description", part.description]]);
    default:
      return block(JSON.stringify(part, null, 2), "Part of the result");
  }
}

/**
 * @param {string} encoded
 * @param {string} type as the script says
 */
function showData(encoded, type) {
  let data;
  try {
    data = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
  } catch {
    return block(encoded, "Data that is not base64");
  }
  const image = IMAGES.find(([, is]) => is(data));
  const note = h("p", { className: "hint" }, `${type ?? "no type"}, ${bytes(data.length)}`);
  const save = saveButton(() => [data], "data.bin", "application/octet-stream");
  if (!image) return h("div", { className: "block" }, note, h("div", { className: "bar" }, save));
  const url = URL.createObjectURL(new Blob([data], { type: image[0] }));
  const shown = h("img", { src: url, alt: `Image of the result, ${image[0]}` });
  shown.addEventListener("load", () => URL.revokeObjectURL(url));
  return h("figure", {}, shown, note);
}

/**
 * A value as a table where it is one, otherwise as JSON.
 * @param {any} value
 * @param {string} label
 * @param {boolean} [isInner] its JSON is part of another
 * @returns {HTMLElement}
 */
export function showValue(value, label, isInner = false) {
  const rows = rowsOf(value);
  if (rows) {
    const heads = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 30);
    const cells = rows.slice(0, ROWS).map((row) => heads.map((head) => cell(row[head])));
    const more = rows.length > ROWS ? h("p", { className: "hint" }, `${rows.length - ROWS} more rows are in the JSON below.`) : null;
    return h("div", {}, table(label, heads, cells), more, isInner ? null : json(value, label));
  }
  if (value && typeof value === "object" && !Array.isArray(value)) {
    const pairs = /** @type {[string, any][]} */ (Object.entries(value).map(([name, inside]) => [name, rowsOf(inside) ? showValue(inside, name, true) : cell(inside)]));
    return h("div", {}, facts(pairs), json(value, label));
  }
  return block(JSON.stringify(value, null, 2) ?? "", label, "result.json");
}

/**
 * @param {any} value
 * @returns {any[] | undefined}
 */
function rowsOf(value) {
  const isRow = (/** @type {any} */ row) => row && typeof row === "object" && !Array.isArray(row);
  return Array.isArray(value) && value.length > 0 && value.every(isRow) ? value : undefined;
}

/** @param {any} value */
function cell(value) {
  if (value === undefined) return "";
  if (value === null) return h("code", {}, "null");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 500 ? `${text.slice(0, 500)}…` : text;
}

/**
 * @param {any} value
 * @param {string} label
 */
function json(value, label) {
  const text = JSON.stringify(value, null, 2);
  return h("details", {}, h("summary", {}, "JSON"), block(text, `${label} as JSON`, "result.json"));
}
