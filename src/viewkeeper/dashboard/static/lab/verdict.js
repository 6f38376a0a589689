// What the checker says about a run.

import { h } from "../dom.js";
import { many } from "../format.js";
import { badge } from "../parts.js";

export function verdict(run) {
  const reached = run.level === "none" ? "no level of consistency" : `${run.level} consistency`;
  const asked = `${many(run.states, "state")}, ${many(run.messages.queries, "question")} for ${many(run.transactions, "transaction")}`;
  return h(
    "div",
    { class: "verdict" },
    h("p", {}, badge(run.is_good ? "good" : "bad", `${run.protocol} reached ${reached}`), run.is_good ? "" : ` (expected ${run.expected_level})`),
    h("p", { class: "soft" }, asked),
    run.violation ? violation(run.violation) : null,
    run.left_out ? h("p", { class: "soft" }, `${many(run.left_out, "step")} of the scenario mean messages that this protocol does not send.`) : null,
    h("p", { class: "soft" }, "The same in a terminal: ", h("code", {}, run.replay)),
  );
}

function violation(found) {
  const row = (each) => `(${each.row.join(", ")})${each.count > 1 ? ` ×${each.count}` : ""}`;
  const parts = found.views.flatMap((view) => [
    view.too_many.length ? `too many: ${view.too_many.map(row).join(" ")}` : null,
    view.too_few.length ? `too few: ${view.too_few.map(row).join(" ")}` : null,
  ]);
  return h("p", { class: "note" }, `Not ${found.level}: ${found.reason}. `, parts.filter(Boolean).join("; "));
}
