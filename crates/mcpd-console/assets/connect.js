/** Connect: the entry of this server in each client, the command that writes it, and links. */

import { command, quote } from "./commands.js";
import { fill, h } from "./dom.js";
import { api } from "./session.js";

/** Schemes of links that clients open; no other is made a link. */
const SCHEMES = ["cursor:", "vscode:", "lmstudio:", "goose:"];

/**
 * @param {any} about
 * @param {string} chosen
 */
export async function connectView(about, chosen) {
  const { clients } = await api("connect");
  const detail = h("div", { className: "detail" });
  const one = clients.find((/** @type {any} */ client) => client.name === chosen);
  const links = clients.map((/** @type {any} */ client) => h("li", {}, h("a", { href: `#/connect/${client.name}`, "aria-current": client.name === chosen ? "page" : undefined },
    h("span", { className: "name" }, client.title), client.link ? h("span", { className: "badge ok" }, "link") : null)));
  fill(detail, one ? client(one) : overview(about, clients));
  return {
    element: h("div", { className: one ? "split has-choice" : "split" }, h("nav", { className: "side", "aria-label": "Clients" }, h("ul", { className: "list" }, links)), detail),
    title: one?.title ?? "Connect",
  };
}

/**
 * @param {any} about
 * @param {any[]} clients
 */
function overview(about, clients) {
  return [
    h("h1", { tabIndex: -1 }, "Connect"),
    h("p", {}, "A link adds this server to a client that is installed here:"),
    h("p", { className: "bar" }, clients.map(link)),
    h("p", {}, "Choose any other client on the left: it gets an entry in its configuration, by a command or by hand."),
    about.url ? h("div", {}, h("h2", {}, "Any other client"), h("p", {}, "Streamable HTTP at this address, with the header ", h("code", {}, "Authorization: Bearer TOKEN"), about.caller === "anonymous" ? " if you like; none is required" : "", ":"), command(() => about.url, "Address of the endpoint").element) : null,
    about.tokenFile ? h("p", {}, "The token is in ", h("code", {}, about.tokenFile), ".") : null];
}

/**
 * The link that opens a client, if it has one of a known scheme.
 * @param {any} client
 */
function link(client) {
  const isKnown = SCHEMES.includes(client.link?.slice(0, client.link.indexOf(":") + 1));
  return isKnown ? h("a", { className: "button", href: client.link }, `Add to ${client.title}`) : null;
}

/** @param {any} client */
function client(client) {
  const opener = link(client);
  return h("article", {},
    h("p", { className: "back" }, h("a", { href: "#/connect" }, "All clients")),
    h("h1", { tabIndex: -1 }, client.title),
    opener ? [h("h2", {}, "By a link"), h("p", {}, opener)] : null,
    h("h2", {}, "By a command"), command(() => client.command.map(quote).join(" "), "Command of the installation").element,
    h("h2", {}, "By hand"), client.file ? h("p", {}, "In ", h("code", {}, client.file), ":") : null,
    command(() => client.snippet, "Entry in the file").element);
}
