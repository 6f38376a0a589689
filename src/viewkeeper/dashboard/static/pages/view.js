// The page of one view: how it is now, what it is and asks, its past, and travel through its states.

import { get, post } from "../api.js";
import { h, show } from "../dom.js";
import { many, number, range, seconds, time } from "../format.js";
import { badge, figure, figures, problem, table } from "../parts.js";
import { plan } from "../plan.js";
import { glossary, term } from "../terms.js";
import { travel } from "../travel.js";
import { definition } from "../versions.js";
import { pastCharts } from "../past.js";

// The view's past is fetched anew at most so often.
const REFRESH_MS = 2000;

export async function mount(root, name) {
  document.title = `${name} · Viewkeeper`;
  const now = h("div", {});
  const audit = auditButton(name);
  const past = h("div", { class: "columns" });
  const planned = h("div", {});
  const defined = h("div", {});
  const states = h("div", {});
  const told = h("div", {});
  let found = await get(`/api/views/${encodeURIComponent(name)}`);
  const travelling = travel(name, found);
  root.replaceChildren(
    h("div", { class: "heading" }, h("h1", {}, name), audit.button),
    told,
    now,
    h("section", { class: "card" }, h("h2", {}, "Time travel"), travelling.element),
    h("section", { class: "card" }, h("h2", {}, "Recent states"), states),
    past,
    h("section", { class: "card" }, h("h2", {}, "How it is kept"), planned),
    h("section", { class: "card" }, h("h2", {}, "Definition"), defined),
    glossary("transaction", "level", "protocol", "freshness", "health", "audit", "cut", "part", "phases"),
  );
  states.addEventListener("click", (event) => {
    const chosen = event.target.closest("button[data-txn]");
    if (chosen) travelling.to(Number(chosen.dataset.txn));
  });
  const draw = () => {
    show(told, found.problem && !found.description ? problem(found.problem) : null);
    show(states, statesOf(found));
    show(past, pastCharts(found));
    show(planned, plan(found));
    show(defined, definition(found));
  };
  draw();
  let entry = null;
  let fetched = performance.now();
  return {
    async update(moment) {
      const view = moment.views[name];
      if (!view) return;
      show(now, nowOf(view, moment));
      audit.update(view);
      travelling.newest(moment.frontier);
      const due = performance.now() - fetched > REFRESH_MS;
      if ((moment.entry !== entry || !found.description) && due) {
        [entry, fetched] = [moment.entry, performance.now()];
        found = await get(`/api/views/${encodeURIComponent(name)}`);
        draw();
      }
    },
  };
}

function nowOf(view, moment) {
  const target = view.target_seconds === null ? "no target" : `target ${seconds(view.target_seconds)}`;
  return figures(
    figure(term("health", { place: "now" }), badge(view.health.verdict), h("span", { class: "reason" }, view.health.reason)),
    figure(term("level", { place: "now" }), view.level ?? "–"),
    figure(term("protocol", { place: "now" }), view.protocol ?? "–"),
    figure("Rows", h("span", { data: { figure: "rows" } }, number(view.rows))),
    figure(
      term("freshness", { place: "now" }),
      view.freshness_seconds === null ? "not kept now" : seconds(view.freshness_seconds),
      h("span", { class: "reason" }, target),
    ),
    figure(term("transaction", { place: "now", as: "Newest transaction" }), number(moment.frontier)),
  );
}

function auditButton(name) {
  const told = h("span", { class: "audit", role: "status" });
  const press = h("button", { class: "plain", type: "button" }, "Run an audit");
  press.addEventListener("click", async () => {
    press.disabled = true;
    try {
      await post(`/api/views/${encodeURIComponent(name)}/audit`);
    } catch (error) {
      show(told, problem(error));
    }
  });
  return {
    button: h("div", { class: "audit-box" }, told, press),
    update(view) {
      press.disabled = view.audit?.verdict === "running";
      show(told, auditTold(view.audit));
    },
  };
}

function auditTold(audit) {
  if (!audit) return term("audit", { place: "button", as: "Not audited from here yet" });
  const verdicts = {
    running: () => "The audit is running …",
    equal: () => badge("good", `right at transaction ${number(audit.txn)}: ${many(audit.rows, "row")} as in the sources`),
    different: () => badge("bad", `wrong at transaction ${number(audit.txn)}: ${many(audit.missing.length, "row")} missing, ${number(audit.extra.length)} too many`),
    refused: () => h("span", {}, badge("warning", "no verdict"), ` ${audit.error.message}. ${audit.error.hint}`),
  };
  return verdicts[audit.verdict]();
}

function statesOf(found) {
  if (!found.states.length) return h("p", { class: "soft" }, "No state yet: viewkeeper run loads the view.");
  const rows = found.states.slice(0, 8).map((state) => [
    h("span", { class: "number" }, range(state.first_txn, state.last_txn)),
    time(state.committed_at),
    h("span", {}, h("span", { class: "plus" }, `+${number(state.inserted)}`), " ", h("span", { class: "minus" }, `−${number(state.deleted)}`)),
    h("span", { class: "cut" }, Object.entries(state.cut).map(([source, position]) => h("span", {}, `${source} `, h("b", {}, position)))),
    h("button", { class: "plain", type: "button", data: { txn: state.last_txn }, "aria-label": `Look at transaction ${state.last_txn}` }, "Look"),
  ]);
  return table("The newest states", [term("transaction", { place: "states", as: "Transactions" }), "Committed", "Rows changed", term("cut", { place: "states" }), "Time travel"], rows);
}
