// The lab: protocols and scenarios, stepped through message by message; painting; comparisons.

import { get, newestAnswer } from "../api.js";
import { h, show } from "../dom.js";
import { comparison } from "../lab/comparison.js";
import { painting } from "../lab/painting.js";
import { sequence } from "../lab/sequence.js";
import { stepper } from "../lab/stepper.js";
import { verdict } from "../lab/verdict.js";
import { states, world } from "../lab/world.js";
import { code, problem } from "../parts.js";
import { glossary } from "../terms.js";

const RANDOM = "random";
const FIRST = "sweep-figure-5-concurrent";

export async function mount(root) {
  document.title = "Lab · Viewkeeper";
  const choices = await get("/api/lab");
  const element = player(choices);
  root.replaceChildren(
    h("h1", {}, "Lab"),
    h("p", {}, "The protocols run in a simulated world, where messages come late and overtake each other. The checker says what each run was worth."),
    element,
    h("section", { class: "card", id: "painting" }, h("h2", {}, "Painting: several views at one state"), painting(choices)),
    h("section", { class: "card" }, h("h2", {}, "What protocols cost"), comparison(choices.comparisons)),
    glossary("level", "protocol", "ΔV", "V", "cut", "view update table", "action list", "staleness"),
  );
  if (location.hash === "#painting") document.getElementById("painting").scrollIntoView();
  return {};
}

function player(choices) {
  const scenario = h(
    "select",
    { id: "scenario" },
    choices.scenarios.map((each) => h("option", { value: each.name, selected: each.name === FIRST }, each.title)),
    h("option", { value: RANDOM }, "A random run"),
  );
  const protocol = h("select", { id: "protocol" });
  const fields = ["seed", "sources", "transactions"].map((name) => number(name, { seed: 1, sources: 3, transactions: 5 }[name]));
  const random = h("div", { class: "controls", hidden: true }, fields.map((field) => field.element));
  const about = h("div", {});
  const summary = h("p", { class: "soft" });
  const stage = h("div", { class: "stage-area" });
  const now = h("div", {});
  const ends = h("div", {});
  const reached = h("div", {});
  let [run, chart] = [null, null];

  const steps = stepper((index) => {
    if (!run) return;
    chart.to(index);
    show(now, world(run, index));
    reached.replaceChildren(states(run, index, steps.to));
  });

  function offer() {
    const isRandom = scenario.value === RANDOM;
    random.hidden = !isRandom;
    const own = choices.scenarios.find((each) => each.name === scenario.value)?.protocol;
    const kept = protocol.value;
    const fitting = choices.protocols.filter((each) => isRandom || each.plays_scenarios);
    protocol.replaceChildren(...fitting.map((each) => h("option", { value: each.name }, each.name === own ? `${each.name} (as written)` : each.name)));
    protocol.value = own ?? (fitting.some((each) => each.name === kept) ? kept : "sweep");
  }

  const ask = newestAnswer(
    (answer) => {
      run = answer;
      // One word for the view's change, whatever a paper calls it.
      for (const step of run.steps) step.text = step.text.replaceAll("Δ_F", "ΔV");
      about.replaceChildren(...[run.paper ? h("p", { class: "soft" }, run.paper) : null, run.text ? h("p", {}, run.text) : null, run.view ? code(run.view, { "aria-label": "The view" }) : null].filter(Boolean));
      chart = sequence(run, steps.to);
      stage.replaceChildren(chart.element);
      ends.replaceChildren(verdict(run));
      steps.load(run.steps.length);
    },
    (error) => {
      run = null;
      stage.replaceChildren(problem(error));
      for (const part of [about, now, ends, reached]) part.replaceChildren();
    },
  );

  function play() {
    summary.textContent = choices.protocols.find((each) => each.name === protocol.value)?.summary ?? "";
    const given = Object.fromEntries(fields.map((field) => [field.name, field.input.value]));
    if (scenario.value === RANDOM) ask("/api/lab/run", { protocol: protocol.value, ...given });
    else ask("/api/lab/scenario", { name: scenario.value, protocol: protocol.value });
  }

  scenario.addEventListener("change", () => (offer(), play()));
  protocol.addEventListener("change", play);
  for (const field of fields) field.input.addEventListener("change", play);
  const element = h(
    "section",
    { class: "card lab" },
    h("h2", {}, "One view, step by step"),
    h("div", { class: "controls" }, labelled("Scenario", scenario, "grow"), labelled("Protocol", protocol)),
    random,
    summary,
    about,
    steps.element,
    h("div", { class: "lab-grid" }, stage, h("div", {}, now)),
    h("h3", {}, "States of the view, and the checker's verdict"),
    reached,
    ends,
  );
  steps.listenTo(element);
  offer();
  play();
  return element;
}

function labelled(label, field, kind = "") {
  return h("div", { class: kind }, h("label", { for: field.id }, label), field);
}

function number(name, value) {
  const input = h("input", { type: "number", id: `lab-${name}`, min: 1, max: 99, value });
  return { name, input, element: labelled(name[0].toUpperCase() + name.slice(1), input) };
}
