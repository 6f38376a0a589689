// Comparison plots: measured on demand, drawn as small multiples.

import { get } from "../api.js";
import { chart } from "../charts.js";
import { h } from "../dom.js";
import { problem } from "../parts.js";

const TITLES = {
  sweep: "Messages against sources and concurrent updates",
  rings: "Rings: latency and messages",
  medwrap: "Wrappers: questions and space",
  staleness: "Staleness",
};

export function comparison(names) {
  const plots = h("div", { class: "columns", "aria-live": "polite" });
  const choose = h("select", { id: "comparison" }, names.map((name) => h("option", { value: name }, TITLES[name] ?? name)));
  const press = h("button", { class: "main", type: "button" }, "Measure");
  press.addEventListener("click", async () => {
    press.disabled = true;
    plots.replaceChildren(h("p", { class: "loading" }, "Running simulations …"));
    try {
      const { panels } = await get("/api/lab/comparison", { name: choose.value });
      plots.replaceChildren(...panels.map(drawn));
    } catch (error) {
      plots.replaceChildren(problem(error));
    }
    press.disabled = false;
  });
  return h("div", {}, h("div", { class: "controls" }, h("div", {}, h("label", { for: "comparison" }, "What to compare"), choose), press), plots);
}

/** A line whose name has a remark in brackets has the colour of the name without it, dashed. */
function drawn(panel) {
  const plain = (name) => name.replace(/ \([^)]*\)$/, "");
  const colours = [...new Set(panel.lines.flatMap((line) => line.name.split(", ")).map(plain))];
  const lines = panel.lines.map((line) => ({ ...line, colour: colours.indexOf(plain(line.name.split(", ")[0])) % 8, dashed: plain(line.name) !== line.name }));
  const marks = [...new Set(panel.lines.flatMap((line) => line.points.map(([x]) => x)))];
  const short = (value) => String(Number(value.toPrecision(3)));
  return h(
    "section",
    { class: "card" },
    h("h3", {}, panel.title),
    h("p", { class: "soft" }, panel.y),
    chart({ label: `${panel.title}: ${panel.y}, by ${panel.x}`, lines, y: short, x: short, xTicks: marks, logarithmic: panel.logarithmic, xLabel: panel.x, height: 230 }),
  );
}
