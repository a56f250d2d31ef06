/** Choice of one value of a filter, or of none: buttons while they are few, otherwise a list. */

import { fill, h } from "./dom.js";

/** Number of values above which there is a list. */
const BUTTONS = 8;

/**
 * @param {string} id
 * @param {string} label
 * @param {string} none text of the list while nothing is chosen
 * @param {() => void} changed
 */
export function choice(id, label, none, changed) {
  let value = "";
  let offered = "";
  const shown = h("div", { className: "choices" });
  const element = h("div", { id, role: "group", "aria-labelledby": `${id}-label` }, h("span", { className: "label", id: `${id}-label` }, label), shown);
  /** @param {string} next */
  function choose(next) {
    value = next;
    mark();
    changed();
  }
  function mark() {
    const select = shown.querySelector("select");
    if (select) select.value = value;
    for (const button of shown.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.value === value));
  }
  /** @param {string[][]} choices */
  function buttons(choices) {
    return choices.map(([one, text]) => h("button", { type: "button", className: "chip", value: one, onclick: () => choose(value === one ? "" : one) }, text));
  }
  /** @param {string[][]} choices */
  function list(choices) {
    const options = [["", none], ...choices].map(([one, text]) => h("option", { value: one }, text));
    const select = h("select", { "aria-labelledby": `${id}-label`, onchange: () => choose(select.value) }, options);
    return select;
  }
  return {
    element,
    value: () => value,
    /**
     * Offers values with their texts, and shows the one that is chosen.
     * @param {string[][]} choices
     * @param {string} chosen
     */
    offer(choices, chosen) {
      value = chosen;
      const all = chosen === "" || choices.some(([one]) => one === chosen) ? choices : [...choices, [chosen, chosen]];
      element.hidden = all.length === 0;
      // Buttons that have not changed keep the focus.
      if (offered !== JSON.stringify(all)) {
        offered = JSON.stringify(all);
        fill(shown, all.length > BUTTONS ? list(all) : buttons(all));
      }
      mark();
    },
  };
}
