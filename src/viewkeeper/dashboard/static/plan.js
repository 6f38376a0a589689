// How a view is kept, as `viewkeeper explain` tells it, drawn: what is read, joined and asked.

import { h } from "./dom.js";
import { kind, many } from "./format.js";
import { badge, code, empty } from "./parts.js";
import { term } from "./terms.js";

export function plan(found) {
  const told = found.description;
  if (!told) {
    return empty("Not known yet.", h("p", {}, "A view is understood with the help of its sources. As soon as they answer, its plan stands here."));
  }
  const remarks = (told.remarks ?? []).map((remark) => h("p", { class: "note" }, remark));
  return [drawing(told), promise(told), remarks, questions(told), parts(told)];
}

/** The joins of the view, those of its steps first. */
function allTerms(told) {
  return [...(told.steps ?? []).flatMap((step) => step.terms), ...told.terms];
}

function drawing(told) {
  const read = Object.fromEntries(told.reads.map((each) => [each.relation, each]));
  const asked = Math.max(0, ...told.changes.map((change) => change.questions));
  const sources = told.sources.map((source) =>
    h(
      "div",
      { class: "box" },
      h("strong", {}, source),
      h("span", { class: "soft" }, ` ${kind(told.kinds[source])}`),
      h("ul", {}, told.relations.filter((name) => name.startsWith(`${source}.`)).map((name) => h("li", {}, relation(name, read[name])))),
    ),
  );
  const joins = allTerms(told).map((each) => each.occurrences.map((occurrence) => occurrence.relation).join(" ⋈ "));
  return h(
    "div",
    { class: "plan", role: "group", "aria-label": "From the sources to the view" },
    h("div", { class: "stage" }, sources),
    h("div", { class: "arrow", role: "img", "aria-label": "changes go on; keys go back as questions" }, "⇄"),
    h("div", { class: "stage" }, h("div", { class: "box" }, h("strong", {}, "join"), joins.map((join) => h("p", {}, join)), h("p", { class: "soft" }, asked ? `asks at most ${many(asked, "question")} for a change` : "asks nothing"))),
    h("div", { class: "arrow", role: "img", "aria-label": "to the view" }, "→"),
    h("div", { class: "stage" }, h("div", { class: "box" }, h("strong", {}, told.name), h("p", { class: "soft" }, many(told.columns.length, "column")), h("p", {}, told.columns.map((column) => column.name).join(", ")))),
  );
}

function relation(name, read) {
  if (!read) return name.split(".").slice(1).join(".");
  const left = read.left_out?.length ?? 0;
  return [name.split(".").slice(1).join("."), h("span", { class: "soft" }, `: ${read.columns.length} of ${read.columns.length + left} columns`)];
}

function promise(told) {
  if (!told.incremental) {
    return h("div", { class: "note" }, "Not kept change by change: ", told.not_incremental_because.join("; "));
  }
  const { level, protocol, declared, meets_declared: meets } = told.reaches;
  return h("p", {}, badge(meets ? "good" : "bad", `reaches ${level}`), ` with ${protocol}; the text asks for ${declared}.`);
}

function questions(told) {
  if (!told.changes.length) return null;
  const question = (hop) =>
    hop.whole_relation
      ? `${hop.source}: all of ${hop.relation} (nothing equal joins it)`
      : `${hop.source}: the rows of ${hop.relation} whose ${hop.by.join(" and ")} is among the values of ${hop.keys_from.join(" and ")}`;
  return [
    h("h3", {}, "Asked when something changes"),
    h("ul", { class: "questions" }, told.changes.map((change) => h("li", {}, `A change of ${change.relation}: `, change.asks.length ? h("ol", {}, change.asks.map((hop) => h("li", {}, question(hop)))) : "nothing is asked"))),
  ];
}

function parts(told) {
  const fragments = allTerms(told).flatMap((each) => each.fragments).filter((fragment) => told.sources.includes(fragment.source));
  return [
    h("h3", {}, "Each source's ", term("part", { place: "plan", as: "part" })),
    h("div", { class: "columns tight" }, fragments.map((fragment) => h("div", {}, h("p", { class: "soft" }, fragment.source), code(fragment.sql, { "aria-label": `What ${fragment.source} could answer alone` })))),
  ];
}
