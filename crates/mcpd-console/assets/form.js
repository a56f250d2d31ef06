/** Form of a JSON Schema. A field that is left empty is left out of the value. */

import { add, fill, h } from "./dom.js";

/**
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {() => any} value `undefined` if it is left out
 * @property {(value: any) => void} set
 */

/** @typedef {() => void} Changed */

let ids = 0;

/**
 * @param {any} schema
 * @param {Changed} changed
 * @returns {Field}
 */
export function form(schema, changed) {
  return properties(schema, changed);
}

/**
 * @param {any} schema
 * @param {Changed} changed
 * @returns {Field}
 */
function properties(schema, changed) {
  const required = new Set(schema?.required ?? []);
  const element = h("div", { className: "fields" });
  /** @type {[string, Field][]} */
  const fields = [];
  for (const [name, part] of Object.entries(schema?.properties ?? {})) {
    const made = labelled(name, part, required.has(name), changed);
    fields.push([name, made]);
    add(element, made.element);
  }
  /** Values that no field is for. */
  let others = {};
  return {
    element,
    value() {
      /** @type {Record<string, any>} */
      const value = { ...others };
      for (const [name, part] of fields) {
        const inside = part.value();
        if (inside !== undefined) value[name] = inside;
      }
      return value;
    },
    set(value) {
      const names = new Set(fields.map(([name]) => name));
      const given = Object.entries(value ?? {});
      others = Object.fromEntries(given.filter(([name]) => !names.has(name)));
      for (const [name, part] of fields) part.set(value?.[name]);
    },
  };
}

/** @param {any} schema */
function kindOf(schema) {
  const types = [schema?.type].flat().filter((type) => type && type !== "null");
  if (schema?.enum || schema?.oneOf?.every((/** @type {any} */ choice) => "const" in choice)) return "choice";
  return types.length === 1 ? types[0] : "any";
}

/**
 * A field with its name, its description and its bounds.
 * @param {string} name
 * @param {any} schema
 * @param {boolean} isRequired
 * @param {Changed} changed
 * @returns {Field}
 */
function labelled(name, schema, isRequired, changed) {
  const id = `field-${ids++}`;
  const kind = kindOf(schema);
  const isGroup = kind === "array" || (kind === "object" && schema.properties);
  const label = [h("span", { className: "name" }, schema?.title ?? name),
    schema?.title ? h("code", {}, name) : null,
    isRequired ? h("span", { className: "mark" }, "required") : null,
    h("span", { className: "hint" }, hint(schema, kind))];
  const description = schema?.description ? h("p", { className: "description", id: `${id}-text` }, schema.description) : null;
  const field = control(kind, schema, { id, isRequired, changed, describedBy: description ? `${id}-text` : undefined });
  const element = isGroup
    ? h("fieldset", { className: "group" }, h("legend", {}, label), description, field.element)
    : h("div", { className: "field" }, h("label", { for: id }, label), description, field.element);
  if (schema?.default !== undefined) field.set(schema.default);
  return { element, value: field.value, set: field.set };
}

/**
 * @param {any} schema
 * @param {string} kind
 */
function hint(schema, kind) {
  /** @type {Record<string, string>} */
  const words = { any: "JSON", choice: "", array: "list", string: "text", object: "" };
  const parts = [words[kind] ?? kind];
  const low = schema?.minimum ?? schema?.minLength ?? schema?.minItems;
  const high = schema?.maximum ?? schema?.maxLength ?? schema?.maxItems;
  const unit = kind === "string" ? " characters" : kind === "array" ? " items" : "";
  if (low !== undefined && high !== undefined) parts.push(`${low} to ${high}${unit}`);
  else if (low !== undefined) parts.push(`at least ${low}${unit}`);
  else if (high !== undefined) parts.push(`at most ${high}${unit}`);
  if (schema?.format) parts.push(schema.format);
  if (schema?.pattern) parts.push(`matches ${schema.pattern}`);
  return parts.filter(Boolean).join(", ");
}

/**
 * @typedef {object} Setting
 * @property {string} id
 * @property {boolean} isRequired
 * @property {Changed} changed
 * @property {string} [describedBy]
 */

/**
 * @param {string} kind
 * @param {any} schema
 * @param {Setting} setting
 * @returns {Field}
 */
function control(kind, schema, setting) {
  switch (kind) {
    case "choice":
      return choice(schema, setting);
    case "boolean":
      return choice({ enum: [true, false] }, setting);
    case "integer":
    case "number":
      return number(schema, kind, setting);
    case "string":
      return text(schema, setting);
    case "array":
      return array(schema, setting);
    case "object":
      return schema.properties ? properties(schema, setting.changed) : json(setting);
    default:
      return json(setting);
  }
}

/**
 * @param {any} schema
 * @param {Setting} setting
 * @returns {Field}
 */
function choice(schema, { id, isRequired, changed, describedBy }) {
  const choices = schema.enum?.map((/** @type {any} */ value) => ({ const: value }))
    ?? schema.oneOf;
  const select = h("select", { id, onchange: changed, "aria-describedby": describedBy });
  if (!isRequired || schema.default === undefined) add(select, h("option", { value: "" }, "– not given –"));
  choices.forEach((/** @type {any} */ one, /** @type {number} */ at) =>
    add(select, h("option", { value: String(at) }, one.title ?? (typeof one.const === "string" ? one.const : JSON.stringify(one.const)))));
  return {
    element: select,
    value: () => (select.value === "" ? undefined : choices[Number(select.value)].const),
    set: (value) => {
      const at = choices.findIndex((/** @type {any} */ one) => JSON.stringify(one.const) === JSON.stringify(value));
      select.value = at < 0 ? "" : String(at);
    },
  };
}

/**
 * @param {any} schema
 * @param {string} kind
 * @param {Setting} setting
 * @returns {Field}
 */
function number(schema, kind, { id, isRequired, changed, describedBy }) {
  const input = h("input", {
    id,
    type: "text",
    inputMode: kind === "integer" ? "numeric" : "decimal",
    oninput: changed,
    "aria-describedby": describedBy,
    "aria-required": isRequired ? "true" : undefined,
  });
  return {
    element: input,
    value: () => {
      const given = input.value.trim();
      const value = Number(given);
      // What is no number is sent as it is: the server says what is wrong with it.
      const isNumber = given !== "" && Number.isFinite(value) && (kind !== "integer" || Number.isSafeInteger(value));
      input.classList.toggle("invalid", given !== "" && (!isNumber || value < schema.minimum || value > schema.maximum));
      return given === "" ? undefined : isNumber ? value : given;
    },
    set: (value) => (input.value = value === undefined || value === null ? "" : String(value)),
  };
}

/** @type {Record<string, string>} */
const INPUTS = { date: "date", time: "time", email: "email", uri: "url", password: "password" };

/**
 * @param {any} schema
 * @param {Setting} setting
 * @returns {Field}
 */
function text(schema, { id, isRequired, changed, describedBy }) {
  const type = schema.writeOnly ? "password" : INPUTS[schema.format];
  const shared = { id, oninput: changed, "aria-describedby": describedBy, "aria-required": isRequired ? "true" : undefined, spellcheck: false };
  const input = type ? h("input", { ...shared, type, autocomplete: "off" }) : h("textarea", { ...shared, rows: 1, oninput: () => { grow(); changed(); } });
  function grow() {
    if (input instanceof HTMLTextAreaElement) input.rows = Math.min(12, Math.max(1, input.value.split("\n").length));
  }
  const isBinary = schema.contentEncoding === "base64" || schema.format === "byte";
  const file = h("input", { type: "file", hidden: true, tabIndex: -1, "aria-hidden": "true", onchange: read });
  async function read() {
    const chosen = file.files?.[0];
    if (!chosen) return;
    input.value = isBinary ? await base64(chosen) : await chosen.text();
    file.value = "";
    grow();
    changed();
  }
  const pick = h("button", { type: "button", className: "quiet", onclick: () => file.click(), "aria-label": `Fill ${id} from a file` }, "From a file…");
  pick.setAttribute("aria-label", "Fill this field from a file");
  return {
    element: type ? h("div", { className: "row" }, input) : h("div", { className: "row" }, input, pick, file),
    value: () => (input.value === "" && !isRequired ? undefined : input.value),
    set: (value) => {
      input.value = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
      grow();
    },
  };
}

/** @param {File} file */
async function base64(file) {
  const data = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(binary);
}

/**
 * @param {any} schema
 * @param {Setting} setting
 * @returns {Field}
 */
function array(schema, { isRequired, changed }) {
  const items = h("ol", { className: "items" });
  /** @type {{field: Field, row: HTMLElement}[]} */
  let rows = [];
  let isGiven = isRequired;
  /** @param {any} [value] */
  function append(value) {
    const id = `field-${ids++}`;
    const field = control(kindOf(schema.items), schema.items ?? {}, { id, isRequired: true, changed });
    if (value !== undefined) field.set(value);
    const label = h("label", { for: id, className: "visually-hidden" }, `Item ${rows.length + 1}`);
    const entry = { field, row: h("li", {}, label, field.element, h("button", { type: "button", className: "quiet", onclick: remove }, "Remove")) };
    function remove() {
      rows = rows.filter((other) => other !== entry);
      entry.row.remove();
      addButton.focus();
      changed();
    }
    rows.push(entry);
    add(items, entry.row);
    return entry;
  }
  const addButton = h("button", { type: "button", onclick: extend }, "Add an item");
  function extend() {
    isGiven = true;
    const entry = append();
    changed();
    /** @type {HTMLElement | null} */ (entry.row.querySelector("input, textarea, select"))?.focus();
  }
  return {
    element: h("div", {}, items, addButton),
    value: () => (rows.length || isGiven ? rows.map(({ field }) => field.value() ?? null) : undefined),
    set: (value) => {
      rows = [];
      fill(items);
      isGiven = isRequired || Array.isArray(value);
      if (Array.isArray(value)) value.forEach(append);
    },
  };
}

/**
 * @param {Setting} setting
 * @returns {Field}
 */
function json({ id, changed, describedBy }) {
  const input = h("textarea", { id, rows: 2, className: "code", spellcheck: false, oninput: changed, "aria-describedby": describedBy });
  return {
    element: input,
    value: () => {
      input.classList.remove("invalid");
      if (input.value.trim() === "") return undefined;
      try {
        return JSON.parse(input.value);
      } catch {
        input.classList.add("invalid");
        return input.value;
      }
    },
    set: (value) => (input.value = value === undefined ? "" : JSON.stringify(value, null, 2)),
  };
}
