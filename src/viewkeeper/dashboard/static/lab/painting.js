// The paper's examples of painting, and random runs, message by message.

import { newestAnswer } from "../api.js";
import { h, show } from "../dom.js";
import { badge, problem } from "../parts.js";
import { colourLegend, paintingTable } from "../painting.js";
import { term } from "../terms.js";
import { stepper } from "./stepper.js";

export function painting(choices) {
  const table = h("div", { class: "painted" });
  const title = h("p", {});
  let run = null;
  const steps = stepper((index) => run && show(table, stepOf(run.steps[index])));
  const options = [
    ...choices.examples.map((example) => h("option", { value: `example:${example.name}` }, inWords(example.title))),
    ...choices.paintings.map((name) => h("option", { value: `painting:${name}` }, `A random run under ${name}`)),
  ];
  const choose = h("select", { id: "painting-choice" }, options);
  const seed = h("input", { type: "number", id: "painting-seed", min: 1, value: 1 });
  const ask = newestAnswer(
    (answer) => {
      run = answer;
      show(title, badge(run.is_good ? "good" : "bad", run.level), ` ${Object.entries(run.views).map(([view, reads]) => `${view} reads ${reads.join(", ")}`).join("; ")}`);
      steps.load(run.steps.length);
    },
    (error) => show(table, problem(error)),
  );
  const start = () => {
    const [kind, name] = choose.value.split(":");
    seed.disabled = kind === "example";
    ask("/api/lab/painting", kind === "example" ? { example: name } : { painting: name, seed: seed.value });
  };
  choose.addEventListener("change", start);
  seed.addEventListener("change", start);
  const element = h(
    "div",
    {},
    h("div", { class: "controls" }, h("div", { class: "grow" }, h("label", { for: "painting-choice" }, "Example"), choose), h("div", {}, h("label", { for: "painting-seed" }, "Seed"), seed)),
    title,
    steps.element,
    table,
    h("p", { class: "soft" }, term("view update table", { place: "lab" }), " · ", term("action list", { place: "lab" })),
    colourLegend(),
  );
  steps.listenTo(element);
  choose.value = `example:${choices.examples.find((example) => example.name === "example-3")?.name ?? choices.examples[0].name}`;
  start();
  return element;
}

/** The paper's notation in words: REL_1 = {V1}, AL_1^V1, U_1. */
function inWords(text) {
  return text
    .replace(/^REL_(\d+) = \{(.*?)\}/u, "U$1 concerns $2")
    .replaceAll(/AL_(\d+)\^(\w+)/gu, "change of $2 up to U$1")
    .replaceAll(/U_(\d+)/gu, "U$1");
}

function stepOf(step) {
  const rows = (each) => each.rows.map((row) => ({ name: `U${row.row}`, cells: row.cells, note: row.lists.map(inWords).join(", ") || "–" }));
  return [
    h("p", { class: "says", "aria-live": "polite" }, inWords(step.message)),
    step.tables.map((each) => paintingTable(each.heading || "The view update table", "Update", each.views, rows(each), "Lists that wait")),
    step.tables.length ? null : h("p", { class: "soft" }, "The table is empty."),
    step.commits.map((commit) => h("p", { class: "note" }, inWords(commit))),
  ];
}
