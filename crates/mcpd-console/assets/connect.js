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
  fill(detail, one ? client(one) : [
    h("h1", { tabIndex: -1 }, "Connect"),
    h("p", {}, "Choose a client on the left: it gets an entry in its configuration, by a link, by a command, or by hand."),
    about.url ? h("div", {}, h("h2", {}, "Any other client"), h("p", {}, "Streamable HTTP at this address, with the header ", h("code", {}, "Authorization: Bearer TOKEN"), about.caller === "anonymous" ? " if you like; none is required" : "", ":"), command(() => about.url, "Address of the endpoint").element) : null,
    about.tokenFile ? h("p", {}, "The token is in ", h("code", {}, about.tokenFile), ".") : null]);
  return {
    element: h("div", { className: one ? "split has-choice" : "split" }, h("nav", { className: "side", "aria-label": "Clients" }, h("ul", { className: "list" }, links)), detail),
    title: one?.title ?? "Connect",
  };
}

/** @param {any} client */
function client(client) {
  const isLink = client.link && SCHEMES.includes(client.link.slice(0, client.link.indexOf(":") + 1));
  return h("article", {},
    h("p", { className: "back" }, h("a", { href: "#/connect" }, "All clients")),
    h("h1", { tabIndex: -1 }, client.title),
    isLink ? [h("h2", {}, "By a link"), h("p", {}, h("a", { className: "button primary", href: client.link }, `Add to ${client.title}`))] : null,
    h("h2", {}, "By a command"), command(() => client.command.map(quote).join(" "), "Command of the installation").element,
    h("h2", {}, "By hand"), client.file ? h("p", {}, "In ", h("code", {}, client.file), ":") : null,
    command(() => client.snippet, "Entry in the file").element);
}
