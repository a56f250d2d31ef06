/** Skills: what they say of themselves, and their files. */

import { block, bytes, facts, failure, fill, h, table } from "./dom.js";
import { request } from "./session.js";

/** Digits of a digest that are shown. */
const DIGITS = 12;

/** @param {any} skill */
export function skillDetail(skill) {
  const { name, description, ...rest } = skill.frontmatter;
  const shown = h("div", { role: "status" });
  /** @param {string} uri */
  async function show(uri) {
    fill(shown, "…");
    try {
      const { result } = await request("resources/read", { uri }, { quiet: true });
      const text = result.contents?.[0]?.text;
      fill(shown, h("h2", {}, uri), text === undefined ? h("p", { className: "hint" }, "This file is no text.") : block(text, "Text of the file", uri.split("/").pop()));
    } catch (error) {
      fill(shown, failure(error));
    }
  }
  const rows = skill.resources.map((/** @type {any} */ file) => [
    h("button", { type: "button", className: "link", onclick: () => show(file.uri) }, file.uri),
    bytes(file.size),
    h("code", {}, file.digest.slice(0, "sha256:".length + DIGITS)),
  ]);
  return h("article", {},
    h("h1", { tabIndex: -1 }, String(name)),
    h("p", { className: "message" }, String(description)),
    h("p", {}, h("span", { className: "badge" }, "skill"), " Instructions for models; the client decides if one is used."),
    facts(Object.entries(rest).map(([key, value]) => /** @type {[string, string]} */ ([key, typeof value === "string" ? value : JSON.stringify(value)]))),
    h("h2", {}, "Files"),
    table("Files of the skill", ["File", "Size", "Digest"], rows),
    shown);
}
