/** Commands for a shell. They have no character that a terminal or a reader could take otherwise. */

import { copyButton, h, jsonText, visible } from "./dom.js";
import { headersOf, message, parameterHeaders } from "./session.js";

/**
 * A command that is shown, and copied as it is.
 * @param {() => string} text
 */
export function command(text, label = "Command") {
  const code = h("pre", { className: "command", tabIndex: 0, role: "group", "aria-label": label });
  const update = () => (code.textContent = visible(text()));
  update();
  return { element: h("div", { className: "block" }, code, h("div", { className: "bar" }, copyButton(text))), update };
}

/** @param {string} text */
const isPlain = (text) => visible(text) === text && !/[\t\n]/.test(text);

/**
 * Quotes a word for a shell. Control and hidden characters are escapes, because a terminal acts on
 * them before the shell reads the quotes.
 * @param {string} word
 */
export function quote(word) {
  if (/^[A-Za-z0-9_\/:=.,@%+-]+$/.test(word)) return word;
  if (isPlain(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const octal = (/** @type {string} */ char) => Array.from(new TextEncoder().encode(char), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  const characters = Array.from(word, (char) => (/[\\']/.test(char) ? `\\${char}` : isPlain(char) ? char : octal(char)));
  return `$'${characters.join("")}'`;
}

/**
 * @param {any} about
 * @param {any} tool
 * @param {any} values
 */
export function curlLine(about, tool, values) {
  const url = about.url ?? `${location.origin}/mcp`;
  const body = message("tools/call", { name: tool.name, arguments: values }, true);
  body.id = 1;
  const headers = { ...headersOf("tools/call", tool.name), ...parameterHeaders(tool.inputSchema, values) };
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
  if (about.tokenFile) lines.unshift(`-H "Authorization: Bearer $(cat ${quote(about.tokenFile)})"`);
  else if (about.caller !== "anonymous") lines.unshift("-H \"Authorization: Bearer $MCPD_TOKEN\"");
  return [`curl -N ${quote(url)}`, ...lines, `-d ${quote(jsonText(body))}`].join(" \\\n  ");
}

/**
 * @param {any} about
 * @param {string} path
 * @param {any} values
 */
export function callLine(about, path, values) {
  const url = about.url ?? `${location.origin}/mcp`;
  const isSimple = Object.keys(values).every((name) => /^[A-Za-z_][\w.-]*$/.test(name));
  const word = (/** @type {[string, any]} */ [name, value]) =>
    typeof value === "string" && isPlain(value) ? `${name}=${value}` : `${name}:=${jsonText(value)}`;
  const rest = isSimple ? Object.entries(values).map(word).map(quote) : ["--arguments", quote(jsonText(values))];
  const isOpen = about.caller === "anonymous";
  const token = isOpen ? [] : ["--token-env", "MCPD_TOKEN"];
  const set = about.tokenFile && !isOpen ? `MCPD_TOKEN=$(cat ${quote(about.tokenFile)}) ` : "";
  return set + ["mcpd", "call", ...token, quote(url), quote(path), ...rest].join(" ");
}
