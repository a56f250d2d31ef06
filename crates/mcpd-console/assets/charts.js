/** Small charts of numbers over time, drawn as SVG. */

import { clock, h } from "./dom.js";

const WIDTH = 300;
const HEIGHT = 70;
const NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
function svg(tag, attributes) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/**
 * A chart of the last hour with its name, its last value and its highest.
 * @param {string} name
 * @param {{time: number, value: number}[]} points
 * @param {(value: number) => string} format
 * @param {string} [kind]
 */
export function chart(name, points, format, kind = "") {
  const last = points.at(-1)?.value ?? 0;
  const high = Math.max(...points.map((point) => point.value), 0);
  const end = points.at(-1)?.time ?? Date.now();
  // A server that has just started fills the width after ten minutes.
  const begin = Math.max(end - 60 * 60_000, Math.min(points[0]?.time ?? end, end - 10 * 60_000));
  const x = (/** @type {number} */ time) => ((time - begin) / (end - begin)) * WIDTH;
  const y = (/** @type {number} */ value) => HEIGHT - 2 - (high > 0 ? (value / high) * (HEIGHT - 6) : 0);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: `chart ${kind}`, "aria-hidden": "true" });
  drawing.append(svg("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 1.5, y2: HEIGHT - 1.5, class: "base" }));
  if (points.length > 1) {
    const line = points.map(({ time, value }) => `${x(time).toFixed(1)},${y(value).toFixed(1)}`);
    drawing.append(svg("polygon", { points: `${x(points[0].time).toFixed(1)},${HEIGHT - 2} ${line.join(" ")} ${WIDTH},${HEIGHT - 2}`, class: "area" }));
    drawing.append(svg("polyline", { points: line.join(" "), class: "line" }));
  }
  const from = points[0] ? clock(Math.max(begin, points[0].time)) : "";
  return h("figure", { className: "panel" },
    h("figcaption", {}, h("span", { className: "name" }, name), h("span", { className: "value" }, format(last))),
    drawing,
    h("p", { className: "hint" }, points.length > 1 ? `highest ${format(high)} since ${from}` : "a chart appears after twenty seconds"));
}

/**
 * Differences of a counter between samples, per minute.
 * @param {any[]} samples
 * @param {string} name
 */
export function rate(samples, name) {
  return samples.slice(1).map((sample, at) => {
    const before = samples[at];
    const minutes = (sample.time - before.time) / 60_000;
    return { time: sample.time, value: minutes > 0 ? Math.max(0, sample[name] - before[name]) / minutes : 0 };
  });
}

/**
 * @param {any[]} samples
 * @param {string} name
 */
export function level(samples, name) {
  return samples.map((sample) => ({ time: sample.time, value: sample[name] }));
}

/**
 * Bars of a histogram with cumulative counts by upper bound.
 * @param {Record<string, number>} latency
 */
export function histogram(latency) {
  const bounds = Object.entries(latency).map(([bound, count]) => ({ bound: bound === "+Inf" ? Infinity : Number(bound), count })).sort((a, b) => a.bound - b.bound);
  const all = bounds.map(({ bound, count }, at) => ({ bound, count: count - (bounds[at - 1]?.count ?? 0) }));
  const first = Math.max(0, all.findIndex((part) => part.count > 0));
  const parts = all.slice(first, all.findLastIndex((part) => part.count > 0) + 1);
  const high = Math.max(...parts.map((part) => part.count), 1);
  const label = (/** @type {number} */ bound) => (bound === Infinity ? "more" : bound < 1 ? `≤ ${Math.round(bound * 1000)} ms` : `≤ ${bound} s`);
  return h("table", { className: "histogram" },
    h("caption", { className: "visually-hidden" }, "Calls by duration, since the start"),
    h("thead", { className: "visually-hidden" }, h("tr", {}, h("th", { scope: "col" }, "Duration"), h("th", { scope: "col" }, "Share"), h("th", { scope: "col" }, "Calls"))),
    h("tbody", {}, parts.map(({ bound, count }) => {
      const bar = h("span", { className: "stick" });
      bar.style.width = `${(count / high) * 100}%`;
      return h("tr", {}, h("th", { scope: "row" }, label(bound)), h("td", {}, bar), h("td", { className: "number" }, count.toLocaleString()));
    })));
}
