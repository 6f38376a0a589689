// Small charts in SVG: lines over a common x. Colours are the style sheet's, by the line's number.

import { h, s } from "./dom.js";

const LEFT = 52;
const BOTTOM = 26;
const TOP = 10;
const RIGHT = 30;

/** Round steps that cover a range. */
function ticks(low, high, count = 4) {
  const raw = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const first = Math.ceil(low / step) * step;
  const found = [];
  for (let at = first; at <= high + step / 1e6; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 1.001; power += 1) if (10 ** power >= low * 0.999) found.push(10 ** power);
  return found;
}

/**
 * A chart with its legend. `lines`: [{name, points: [[x, y], …]}]. `x`, `y`: how a tick is written.
 * `label`: what the chart shows, for those who can't see it.
 */
export function chart({ label, lines, width = 460, height = 200, x = String, y = String, logarithmic = false, xTicks = null, xLabel = "" }) {
  const points = lines.flatMap((line) => line.points);
  if (!points.length) return h("p", { class: "soft" }, "Nothing to draw yet.");
  const xs = points.map(([at]) => at);
  const ys = points.map(([, at]) => at);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const low = logarithmic ? Math.min(...ys.filter((at) => at > 0)) : 0;
  const top = Math.max(...ys, logarithmic ? low * 10 : 1e-9);
  const scale = (at) => (logarithmic ? Math.log10(Math.max(at, low) / low) / Math.log10(top / low) : at / top);
  const px = (at) => LEFT + ((at - x0) / (x1 - x0 || 1)) * (width - LEFT - RIGHT);
  const bottom = height - BOTTOM - (xLabel ? 16 : 0);
  const py = (at) => bottom - scale(at) * (bottom - TOP);
  const rules = logarithmic ? logTicks(low, top) : ticks(0, top);
  const marks = xTicks ?? ticks(x0, x1);
  const drawn = s(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}. ${summary(lines, y)}` },
    rules.map((at) => [
      s("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: py(at), y2: py(at) }),
      s("text", { class: "tick", x: LEFT - 8, y: py(at) + 4, "text-anchor": "end" }, y(at)),
    ]),
    marks.map((at) => s("text", { class: "tick", x: px(at), y: bottom + 18, "text-anchor": "middle" }, x(at))),
    xLabel ? s("text", { class: "tick", x: (LEFT + width) / 2, y: height - 6, "text-anchor": "middle" }, xLabel) : null,
    lines.map((line, index) => [
      s("polyline", { class: `line line-${line.colour ?? index}${line.dashed ? " dashed" : ""}`, points: line.points.map(([a, b]) => `${px(a).toFixed(1)},${py(b).toFixed(1)}`).join(" ") }),
      line.points.length < 12 ? line.points.map(([a, b]) => s("circle", { class: `dot line-${line.colour ?? index}`, cx: px(a), cy: py(b), r: 3 })) : null,
    ]),
  );
  return h("figure", { class: "plot" }, drawn, lines.length > 1 ? legend(lines) : null);
}

function legend(lines) {
  return h(
    "ul",
    { class: "legend" },
    lines.map((line, index) => h("li", {}, h("span", { class: `key line-${line.colour ?? index}${line.dashed ? " dashed" : ""}`, "aria-hidden": "true" }), line.name)),
  );
}

function summary(lines, y) {
  return lines
    .filter((line) => line.points.length)
    .map((line) => `${line.name}: last ${y(line.points.at(-1)[1])}, most ${y(Math.max(...line.points.map(([, at]) => at)))}`)
    .join("; ");
}
