/** Form of a JSON Schema. A field that is left empty is left out of the value. */

import { add, fill, h, jsonText, visible } from "./dom.js";

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

/**
 * A schema without the choice of `null`, which is a field that is left out.
 * @param {any} schema
 */
function withoutNull(schema) {
  const { anyOf, oneOf, ...rest } = schema ?? {};
  const choices = (anyOf ?? oneOf ?? []).filter((/** @type {any} */ choice) => choice?.type !== "null");
  const isOptional = choices.length === 1 && (anyOf ?? oneOf).length === 2;
  return isOptional ? { ...choices[0], ...rest } : schema;
}

/** @param {any} schema */
function kindOf(schema) {
  const types = [schema?.type].flat().filter((type) => type && type !== "null");
  if (schema?.enum || schema?.oneOf?.every((/** @type {any} */ choice) => "const" in choice)) return "choice";
  return types.length === 1 ? types[0] : "any";
}

/**
 * Returns whether a value has several fields.
 * @param {string} kind
 * @param {any} schema
 */
const isGroupOf = (kind, schema) => kind === "array" || (kind === "object" && Boolean(schema.properties));

/**
 * A field with its name, its description and its bounds.
 * @param {string} name
 * @param {any} schema
 * @param {boolean} isRequired
 * @param {Changed} changed
 * @returns {Field}
 */
function labelled(name, schema, isRequired, changed) {
  schema = withoutNull(schema);
  const id = `field-${ids++}`;
  const kind = kindOf(schema);
  const isGroup = isGroupOf(kind, schema);
  const label = [h("span", { className: "name" }, schema?.title ?? name),
    schema?.title ? h("code", {}, name) : null,
    isRequired ? h("span", { className: "mark" }, "required") : null,
    h("span", { className: "hint" }, hint(schema, kind))];
  const description = schema?.description ? h("p", { className: "description", id: `${id}-text` }, schema.description) : null;
  const field = control(kind, schema, { id, isRequired, changed, describedBy: description ? `${id}-text` : "" });
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
 * @property {string} describedBy ids of what is said about the field
 */

/**
 * A message below a field, tied to it.
 * @param {HTMLElement} input
 * @param {Setting} setting
 */
function messageOf(input, { id, describedBy }) {
  const element = h("p", { className: "hint", id: `${id}-message`, hidden: true });
  input.setAttribute("aria-describedby", `${describedBy} ${id}-message`.trim());
  return {
    element,
    /** @param {string} fault what is wrong; nothing if all is well @param {string} [note] */
    show(fault, note = "") {
      element.hidden = fault === "" && note === "";
      element.classList.toggle("bad", fault !== "");
      fill(element, fault || note);
      // A list has no field of its own that could be invalid.
      if (fault && !(input instanceof HTMLButtonElement)) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

/**
 * Fault of a number of something, by its bounds.
 * @param {number} count
 * @param {number | undefined} low
 * @param {number | undefined} high
 * @param {string} [unit]
 */
function outOfBounds(count, low, high, unit = "") {
  if (low !== undefined && count < low) return `Expected at least ${low}${unit}.`;
  if (high !== undefined && count > high) return `Expected at most ${high}${unit}.`;
  return "";
}

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
      return schema.properties ? object(schema, setting) : json(setting);
    default:
      return json(setting);
  }
}

/**
 * An object, which is left out if nothing in it is given.
 * @param {any} schema
 * @param {Setting} setting
 * @returns {Field}
 */
function object(schema, { isRequired, changed }) {
  const fields = properties(schema, changed);
  const value = () => {
    const given = fields.value();
    return isRequired || Object.values(given).some((inside) => inside !== "") ? given : undefined;
  };
  return { ...fields, value };
}

/**
 * @param {any} schema
 * @param {Setting} setting
 * @returns {Field}
 */
function choice(schema, { id, isRequired, changed, describedBy }) {
  const choices = schema.enum?.map((/** @type {any} */ value) => ({ const: value }))
    ?? schema.oneOf;
  const select = h("select", { id, onchange: changed, "aria-describedby": describedBy || undefined });
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
function number(schema, kind, setting) {
  const { id, isRequired, changed } = setting;
  const input = h("input", { id, type: "text", inputMode: kind === "integer" ? "numeric" : "decimal", oninput: changed, "aria-required": isRequired ? "true" : undefined });
  const message = messageOf(input, setting);
  return {
    element: h("div", {}, input, message.element),
    value: () => {
      const given = input.value.trim();
      const value = Number(given);
      // What is no number is sent as it is: the server says what is wrong with it.
      const isNumber = given !== "" && Number.isFinite(value) && (kind !== "integer" || Number.isSafeInteger(value));
      message.show(given === "" ? "" : isNumber ? outOfBounds(value, schema.minimum, schema.maximum) : `Expected ${kind === "integer" ? "an integer" : "a number"}.`);
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
function text(schema, setting) {
  const { id, isRequired, changed } = setting;
  const type = schema.writeOnly ? "password" : INPUTS[schema.format];
  const shared = { id, oninput: changed, "aria-required": isRequired ? "true" : undefined, spellcheck: false };
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
  const pick = h("button", { type: "button", className: "quiet", onclick: () => file.click(), "aria-label": "Fill this field from a file" }, "From a file…");
  const message = messageOf(input, setting);
  return {
    element: h("div", {}, h("div", { className: "row" }, input, ...(type ? [] : [pick, file])), message.element),
    value: () => {
      const { value } = input;
      const given = value !== "" || isRequired ? value : undefined;
      const hidden = visible(value) === value ? "" : `It has characters that can't be seen: ${visible(value).match(/\[U\+[0-9A-F]+\]|␛/g)?.slice(0, 10).join(" ")}`;
      message.show(value === "" ? "" : faultOf(value, schema), hidden);
      return given;
    },
    set: (value) => {
      input.value = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
      grow();
    },
  };
}

/**
 * Fault of a text. Its format is left to the server.
 * @param {string} value
 * @param {any} schema
 */
function faultOf(value, schema) {
  const length = outOfBounds([...value].length, schema.minLength, schema.maxLength, " characters");
  if (length || schema.pattern === undefined) return length;
  try {
    return new RegExp(schema.pattern, "u").test(value) ? "" : `Expected a text that matches ${schema.pattern}.`;
  } catch {
    // A pattern of another language than JavaScript.
    return "";
  }
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
function array(schema, setting) {
  const { isRequired, changed } = setting;
  const items = h("ol", { className: "items" });
  const part = withoutNull(schema.items ?? {});
  /** @type {{field: Field, label: HTMLElement, removeButton: HTMLElement, row: HTMLElement}[]} */
  let rows = [];
  let isGiven = isRequired;
  /** @param {any} [value] */
  function append(value) {
    const id = `field-${ids++}`;
    const kind = kindOf(part);
    const field = control(kind, part, { id, isRequired: true, changed, describedBy: "" });
    if (value !== undefined) field.set(value);
    const isGroup = isGroupOf(kind, part);
    const label = isGroup ? h("legend", {}) : h("label", { for: id, className: "visually-hidden" });
    const removeButton = h("button", { type: "button", className: "quiet", onclick: remove }, "Remove");
    const content = isGroup ? [h("fieldset", { className: "group" }, label, field.element)] : [label, field.element];
    const entry = { field, label, removeButton, row: h("li", {}, ...content, removeButton) };
    function remove() {
      rows = rows.filter((other) => other !== entry);
      entry.row.remove();
      number();
      addButton.focus();
      changed();
    }
    rows.push(entry);
    add(items, entry.row);
    number();
    return entry;
  }
  function number() {
    for (const [at, { label, removeButton }] of rows.entries()) {
      fill(label, `Item ${at + 1}`);
      removeButton.setAttribute("aria-label", `Remove item ${at + 1}`);
    }
  }
  const addButton = h("button", { type: "button", onclick: extend }, "Add an item");
  function extend() {
    isGiven = true;
    const entry = append();
    changed();
    /** @type {HTMLElement | null} */ (entry.row.querySelector("input, textarea, select"))?.focus();
  }
  const message = messageOf(addButton, setting);
  return {
    element: h("div", {}, items, addButton, message.element),
    value: () => {
      const isLeftOut = rows.length === 0 && !isGiven;
      message.show(rows.length === 0 ? "" : outOfBounds(rows.length, schema.minItems, schema.maxItems, " items"));
      return isLeftOut ? undefined : rows.map(({ field }) => field.value() ?? null);
    },
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
function json(setting) {
  const { id, changed } = setting;
  const input = h("textarea", { id, rows: 2, className: "code", spellcheck: false, oninput: changed });
  const message = messageOf(input, setting);
  return {
    element: h("div", {}, input, message.element),
    value: () => {
      message.show("");
      if (input.value.trim() === "") return undefined;
      try {
        return JSON.parse(input.value);
      } catch {
        message.show("Expected JSON: a text is between quotes.");
        return input.value;
      }
    },
    set: (value) => (input.value = value === undefined ? "" : jsonText(value, 2)),
  };
}
