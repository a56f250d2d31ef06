/** Console: the sign-in, the header, and the view that the address names. */

import { add, failure, fill, h, say, visible } from "./dom.js";
import { connectView } from "./connect.js";
import { runsView } from "./runs.js";
import { serverView } from "./server.js";
import { api, signIn, signOut, SignedOut } from "./session.js";
import { toolsView } from "./tools.js";

/** @typedef {{element: HTMLElement, title: string, leave?: () => void}} View */

const header = /** @type {HTMLElement} */ (document.getElementById("header"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));

const VIEWS = /** @type {[string, string, (about: any, chosen: string) => Promise<View>][]} */ ([
  ["tools", "Tools", toolsView],
  ["runs", "Runs", runsView],
  ["server", "Server", serverView],
  ["connect", "Connect", connectView],
]);

/** @type {any} */
let about;
/** @type {View | undefined} */
let current;
let drawn = 0;

/** @param {boolean} [isFirst] */
async function show(isFirst = false) {
  const mine = ++drawn;
  current?.leave?.();
  current = undefined;
  const [, name = "", ...rest] = location.hash.split("/");
  const [id, , view] = VIEWS.find(([known]) => known === name) ?? VIEWS[0];
  main.setAttribute("aria-busy", "true");
  // A view may take its sidebar over.
  const scroll = document.querySelector(".side")?.scrollTop ?? 0;
  try {
    about ??= await api("about");
    drawHeader(id);
    const next = await view(about, decode(rest.join("/")));
    if (mine !== drawn) {
      next.leave?.();
      return;
    }
    current = next;
    fill(main, next.element);
    const side = main.querySelector(".side");
    if (side) side.scrollTop = scroll;
    side?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    document.title = `${visible(next.title)} – mcpd console`;
    if (!isFirst) /** @type {HTMLElement | null} */ (main.querySelector("h1"))?.focus({ preventScroll: true });
    if (!side || rest.length === 0) window.scrollTo(0, 0);
    say(next.title);
  } catch (error) {
    if (mine !== drawn) return;
    if (error instanceof SignedOut) drawSignIn();
    else fill(main, h("div", { className: "page" }, failure(error), h("button", { type: "button", onclick: () => show() }, "Try again")));
  } finally {
    if (mine === drawn) main.removeAttribute("aria-busy");
  }
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} id */
function drawHeader(id) {
  fill(header,
    h("a", { className: "brand", href: "#/tools" }, h("img", { src: "/console/icon.svg", alt: "", width: 22, height: 22 }), "mcpd"),
    h("nav", { "aria-label": "Views" }, VIEWS.map(([known, title]) => h("a", { href: `#/${known}`, "aria-current": known === id ? "page" : undefined }, title))),
    h("div", { className: "who" }, h("span", { className: "hint" }, about.caller),
      about.caller === "anonymous" ? null : h("button", { type: "button", className: "quiet", onclick: leave }, "Sign out")));
  async function leave() {
    await signOut();
    about = undefined;
    show();
  }
}

/** @param {unknown} [error] */
function drawSignIn(error) {
  about = undefined;
  fill(header, h("span", { className: "brand" }, h("img", { src: "/console/icon.svg", alt: "", width: 22, height: 22 }), "mcpd"));
  document.title = "Sign in – mcpd console";
  const token = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const fault = h("div");
  if (error) add(fault, failure(error));
  fill(main, h("div", { className: "page narrow" },
    h("h1", { tabIndex: -1 }, "Sign in"),
    h("p", {}, "Open the link that the server printed at its start; it works once, for ten minutes, and mcpd console prints another. Or use a token of the server:"),
    fault,
    h("form", { onsubmit: enter },
      h("div", { className: "field" }, h("label", { for: "token" }, "Token"), token),
      h("div", { className: "bar" }, h("button", { type: "submit", className: "primary" }, "Sign in")))));
  /** @param {Event} event */
  async function enter(event) {
    event.preventDefault();
    try {
      await signIn({ token: token.value.trim() });
      await show();
    } catch (caught) {
      fill(fault, failure(caught));
      token.select();
    }
  }
}

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
  const search = document.getElementById("search");
  if (search) {
    event.preventDefault();
    search.focus();
  }
});
window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) begin();
  else show();
});

/** Uses the code of a link up, and takes it out of the address. */
async function begin() {
  const code = location.hash.startsWith("#code=") ? location.hash.slice(6) : "";
  if (code) {
    history.replaceState(null, "", location.pathname);
    try {
      await signIn({ code });
    } catch (error) {
      about = await api("about").catch(() => undefined);
      if (!about) {
        drawSignIn(error);
        return;
      }
    }
  }
  await show(true);
}

begin();
