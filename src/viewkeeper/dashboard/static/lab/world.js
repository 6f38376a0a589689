// What there is at one step: messages on their way, what waits, the token, ΔV and V.

import { h } from "../dom.js";
import { number } from "../format.js";
import { rowsTable } from "../parts.js";
import { term } from "../terms.js";
import { ring } from "./ring.js";

/** The newest known value of a field at a step. */
function lastKnown(steps, index, field) {
  for (let at = index; at >= 0; at -= 1) if (steps[at][field]) return steps[at][field];
  return null;
}

export function world(run, index) {
  const step = run.steps[index];
  const token = lastKnown(run.steps, index, "token");
  const extent = lastKnown(run.steps, index, "extent") ?? run.states_shown[0]?.extent;
  const change = lastKnown(run.steps, index, "change");
  const asks = run.steps.some((each) => each.receives || each.on_the_way.length);
  const queues = [
    asks ? queue("On the way", step.on_the_way.map((message) => `${message.label} ${message.from} → ${message.to}`)) : null,
    run.steps.some((each) => each.waiting.length) ? queue("Waiting at the warehouse", step.waiting.map((each) => `#${each.number} of ${each.source}`)) : null,
  ].filter(Boolean);
  return [
    h("p", { class: "says", "aria-live": "polite" }, step.text || `${step.receives} arrives`),
    queues.length ? h("div", { class: "queues" }, queues) : null,
    token ? ring(token) : null,
    h(
      "div",
      { class: "split" },
      h("div", {}, h("h3", {}, term("ΔV", { place: "lab", as: "ΔV" }), ", the newest change"), change ? rowsTable("The newest change of the view", change.columns, change.rows, { signed: true }) : h("p", { class: "soft" }, "none yet")),
      h("div", {}, h("h3", {}, term("V", { place: "lab", as: "V" }), ", the view now"), extent ? rowsTable("The view now", extent.columns, extent.rows) : h("p", { class: "soft" }, "not told")),
    ),
    changesOf(step),
  ];
}

function queue(title, items) {
  return h("div", {}, h("h3", {}, title), items.length ? h("ul", { class: "chips" }, items.map((item) => h("li", {}, item))) : h("p", { class: "soft" }, "nothing"));
}

function changesOf(step) {
  const changes = Object.entries(step.changes);
  if (!changes.length) return null;
  return [
    h("h3", {}, `Committed at ${step.place}`),
    changes.map(([relation, rows]) => rowsTable(`Change of ${relation}`, rows.columns, rows.rows, { signed: true })),
  ];
}

/** All states of the view, the reached ones marked. */
export function states(run, index, onChoose) {
  return h(
    "ol",
    { class: "states", "aria-label": "States of the view" },
    run.states_shown.map((state, at) => {
      const rows = state.extent.rows.map((row) => `(${row.values.join(", ")})${row.count > 1 ? `×${row.count}` : ""}`).join(" ") || "empty";
      const cut = state.cut ? Object.entries(state.cut).map(([source, count]) => `${source} ${number(count)}`).join(", ") : "the beginning";
      return h(
        "li",
        { class: state.step <= index ? "reached" : "future" },
        h("button", { type: "button", onclick: () => onChoose(state.step) }, h("b", {}, `State ${at}`), ` ${rows} `, h("span", { class: "soft" }, cut)),
      );
    }),
  );
}
