/**
 * Elements and texts. Everything that scripts, clients and callers wrote is put into the page as
 * text, here, and never as markup.
 */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, any>} Properties */

/**
 * Makes an element. Names in `properties` that begin with `on` are listeners, those with `-` and
 * `role` are attributes, and the others are properties.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Properties} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, visible(String(value)));
    else Reflect.set(element, name, value);
  }
  add(element, ...children);
  return element;
}

/**
 * Appends children; texts become text nodes.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function add(element, ...children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, ...children);
}

// Controls, marks of direction, and characters without a width: they could hide a text or turn it
// around.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Makes hidden characters visible, as their numbers.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDDEN, (char) => {
    const number = char.codePointAt(0) ?? 0;
    return number === 0x1b ? "␛" : `[U+${number.toString(16).toUpperCase().padStart(4, "0")}]`;
  });
}

/**
 * JSON of a value, with its hidden characters as escapes: it reads as it is, and means the same.
 * @param {any} value
 * @param {number} [indent]
 */
export function jsonText(value, indent) {
  const text = JSON.stringify(value, null, indent) ?? "";
  return text.replace(HIDDEN, (char) => char.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""));
}

/** Length of a text that is shown at once, in characters. */
const SHOWN = 20_000;
/** Length of a line that is shown, in characters: longer ones make every browser slow. */
const LINE = 5_000;

/**
 * A text in a frame: its beginning, with buttons for more and for a copy.
 * @param {string} text
 * @param {string} label
 * @param {string} [file] name of the file to save it in
 */
export function block(text, label, file = "output.txt") {
  const pre = h("pre", { className: "text", tabIndex: 0, role: "group", "aria-label": label });
  let shown = 0;
  const more = h("button", { type: "button", className: "quiet", onclick: () => show(SHOWN * 10) }, "Show more");
  const bar = h("div", { className: "bar" }, copyButton(() => text), saveButton(() => [text], file, "text/plain"), more);
  /** @param {number} count */
  function show(count) {
    const part = text.slice(shown, shown + count);
    shown += part.length;
    pre.append(visible(breakLines(part)));
    more.hidden = shown >= text.length;
    more.textContent = `Show more (${(text.length - shown).toLocaleString()} characters)`;
  }
  show(SHOWN);
  return h("div", { className: "block" }, pre, bar);
}

/** @param {string} text */
function breakLines(text) {
  if (text.length < LINE) return text;
  return text.split("\n").map((line) => {
    if (line.length < LINE) return line;
    const parts = [];
    for (let at = 0; at < line.length; at += LINE) parts.push(line.slice(at, at + LINE));
    return parts.join("⏎\n");
  }).join("\n");
}

/** @param {() => string} text */
export function copyButton(text, label = "Copy") {
  const button = h("button", { type: "button", className: "quiet", onclick: copy }, label);
  async function copy() {
    let done = "Copied";
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      done = "Not allowed here";
    }
    button.textContent = done;
    say(done);
    setTimeout(() => (button.textContent = label), 1500);
  }
  return button;
}

/**
 * @param {() => BlobPart[]} parts
 * @param {string} name
 * @param {string} type
 */
export function saveButton(parts, name, type) {
  return h("button", { type: "button", className: "quiet", onclick: save }, "Save");
  function save() {
    const url = URL.createObjectURL(new Blob(parts(), { type }));
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

/**
 * Tells the readers of screens.
 * @param {string} text
 */
export function say(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = visible(text);
}

/** @param {number} milliseconds */
export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

/** @param {number} count */
export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
}

/** @param {number | string} time */
export function clock(time) {
  const date = new Date(time);
  const day = date.toDateString() === new Date().toDateString() ? "" : `${date.toLocaleDateString()} `;
  return day + date.toLocaleTimeString();
}

/**
 * A table with a caption for readers of screens.
 * @param {string} caption
 * @param {string[]} heads
 * @param {Child[][]} rows
 */
export function table(caption, heads, rows) {
  return h("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": caption },
    h("table", {},
      h("caption", { className: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}

/**
 * A list of names and values, without the empty ones.
 * @param {[string, Child][]} pairs
 */
export function facts(pairs) {
  const list = h("dl", { className: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "" || value === false) continue;
    add(list, h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  }
  return list;
}

/**
 * A sentence of the server: what is between backquotes is code.
 * @param {string} text
 * @returns {Child[]}
 */
export function prose(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, at) => (at % 2 ? h("code", {}, part) : part));
}

/**
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A message about a failure.
 * @param {unknown} error
 */
export function failure(error) {
  const text = error instanceof Error ? error.message : String(error);
  return h("p", { className: "notice bad", role: "alert" }, text);
}
