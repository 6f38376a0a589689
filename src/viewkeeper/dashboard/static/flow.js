// The data-flow graph: sources on the left, views on the right, what a view reads between them.

import { s } from "./dom.js";
import { kind, number, seconds, state } from "./format.js";

// A narrow node has its words on two lines.
const [HEIGHT, HEIGHT_NARROW, NARROW] = [66, 86, 190];
const GAP = 18;
const NODE_MAX = 300;

/** Draw the graph into a width in pixels; nothing is scaled, so text stays readable. */
export function flow(moment, width) {
  const sources = Object.entries(moment.sources);
  const views = Object.entries(moment.views);
  const node = Math.min(NODE_MAX, Math.floor((width - Math.max(56, width * 0.14)) / 2));
  const tall = node < NARROW ? HEIGHT_NARROW : HEIGHT;
  const height = Math.max(sources.length, views.length, 1) * (tall + GAP) - GAP + 4;
  const y = (index, count) => 2 + (height - 4 - count * (tall + GAP) + GAP) / 2 + index * (tall + GAP);
  const places = Object.fromEntries(sources.map(([name], index) => [name, y(index, sources.length) + tall / 2]));
  return s(
    "svg",
    { class: "flow", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Which view reads which source" },
    s("g", { "aria-hidden": "true" }, views.map(([, view], index) => edges(view, y(index, views.length) + tall / 2, places, node, width))),
    sources.map(([name, source], index) => sourceNode(name, source, y(index, sources.length), node)),
    views.map(([name, view], index) => viewNode(name, view, y(index, views.length), width - node, node)),
  );
}

function edges(view, to, places, node, width) {
  return view.reads.map((read) => {
    const from = places[read.source];
    const middle = width / 2;
    return s("path", {
      class: "edge",
      "data-verdict": read.verdict,
      d: `M${node} ${from} C${middle} ${from} ${middle} ${to} ${width - node - 7} ${to}`,
      "marker-end": `url(#${arrowOf(read.verdict)})`,
    });
  });
}

const arrowOf = (verdict) => `arrow-${verdict}`;

/** The arrow heads; one drawing of them per page is enough. */
export function arrowHeads() {
  const marker = (verdict) =>
    s(
      "marker",
      { id: arrowOf(verdict), viewBox: "0 0 8 8", refX: 1, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
      s("path", { d: "M0 0 8 4 0 8z", class: "edge-head", "data-verdict": verdict }),
    );
  return s("svg", { class: "defs", width: 0, height: 0, "aria-hidden": "true" }, s("defs", {}, ["good", "idle", "warning", "bad"].map(marker)));
}

function sourceNode(name, source, y, width) {
  const lag = source.behind_seconds === null || source.behind_seconds === undefined ? "" : `, ${seconds(source.behind_seconds)} behind`;
  const told = `Source ${name}, ${kind(source.kind)}, ${state(source.state)}${lag}`;
  const words = [kind(source.kind), state(source.state)];
  return s("g", { class: "node", role: "img", "aria-label": told, transform: `translate(0 ${y})` }, box(name, words, source.verdict, width));
}

function viewNode(name, view, y, x, width) {
  const rows = view.rows === null ? "not loaded" : `${number(view.rows)} rows`;
  return s(
    "a",
    { class: "node", href: `/views/${encodeURIComponent(name)}`, transform: `translate(${x} ${y})` },
    box(name, [view.level, rows], view.health.verdict, width),
  );
}

function box(name, words, verdict, width) {
  const told = words.filter(Boolean);
  const lines = width < NARROW ? told : [told.join(" · ")];
  return [
    s("rect", { x: 1, width: width - 2, height: width < NARROW ? HEIGHT_NARROW : HEIGHT, rx: 8, "data-verdict": verdict }),
    line(name, 14, 27, "name", width),
    lines.map((text, index) => line(text, 14, 49 + index * 20, "soft", width)),
  ];
}

/** A line of text that ends within its box: about so many characters fit. */
function line(text, x, y, kindOfLine, width) {
  const most = Math.max(6, Math.floor((width - 24) / (kindOfLine === "name" ? 8.2 : 6.9)));
  return s("text", { x, y, class: kindOfLine }, text.length > most ? `${text.slice(0, most - 1)}…` : text);
}
