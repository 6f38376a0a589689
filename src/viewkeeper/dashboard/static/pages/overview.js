// The overview: the data-flow graph, the views and the sources, as they are now.

import { h, show } from "../dom.js";
import { arrowHeads, flow } from "../flow.js";
import { bytes, kind, many, number, seconds, state } from "../format.js";
import { badge, empty, figure, figures, problem, table } from "../parts.js";
import { glossary, term } from "../terms.js";

export function mount(root) {
  const summary = h("div", {});
  const troubles = h("div", { "aria-live": "polite" });
  const graph = h("div", { class: "graph" });
  const views = h("div", {});
  const sources = h("div", {});
  let last = null;
  root.replaceChildren(
    h("h1", {}, "Overview"),
    arrowHeads(),
    troubles,
    summary,
    h("section", { class: "card" }, h("h2", {}, "From the sources to the views"), graph, legend()),
    h("section", { class: "card" }, h("h2", {}, "Views"), views),
    h("section", { class: "card" }, h("h2", {}, "Sources"), sources),
    glossary("transaction", "commit", "level", "protocol", "freshness", "health", "position", "lag", "log kept", "queries", "rows fetched"),
  );
  const draw = () => last && graph.clientWidth && show(graph, flow(last, graph.clientWidth));
  new ResizeObserver(draw).observe(graph);
  return {
    update(moment) {
      last = moment;
      show(summary, summaryOf(moment));
      show(troubles, troublesOf(moment));
      draw();
      show(views, viewsOf(moment));
      show(sources, sourcesOf(moment));
    },
  };
}

function summaryOf(moment) {
  const views = Object.values(moment.views);
  const well = views.filter((view) => view.health.verdict === "good").length;
  const reached = Object.values(moment.sources).filter((source) => source.state === "ok" && source.verdict !== "bad").length;
  const age = moment.committed_at ? (new Date(moment.now) - new Date(moment.committed_at)) / 1000 : null;
  return figures(
    figure("Run", badge(moment.health.verdict, moment.state)),
    figure(term("transaction", { place: "summary", as: "Newest transaction" }), number(moment.frontier)),
    figure(term("commit", { place: "summary", as: "Last commit" }), age === null ? "none yet" : `${seconds(Math.max(age, 0))} ago`),
    figure("Views that are well", `${well} of ${views.length}`),
    figure("Sources in order", `${reached} of ${Object.keys(moment.sources).length}`),
  );
}

function troublesOf(moment) {
  const found = [];
  for (const [name, source] of Object.entries(moment.sources)) {
    if (source.error) found.push(problem({ ...source.error, message: `Source ${name}: ${source.error.message}` }));
  }
  if (moment.waiting?.message && !found.length) found.push(problem(moment.waiting));
  for (const change of moment.approvals) found.push(held(change));
  if (moment.changes_waiting && !moment.approvals.length) {
    found.push(h("p", { class: "note" }, `${many(moment.changes_waiting, "schema change")} waiting for your word: `, h("a", { href: "/evolution" }, "Evolution")));
  }
  for (const [name, view] of Object.entries(moment.views)) {
    if (view.problem && view.problem.family === "usage") found.push(problem({ ...view.problem, message: `View ${name}: ${view.problem.message}` }));
  }
  return found;
}

// A schema change that waits for a decision: the views that it names stand still.
function held(change) {
  const said = change.status === "pending" ? "waits for your word" : `is ${change.status}`;
  const message = `A change of ${change.source}.${change.relation} ${said}: ${change.views.join(", ")} ${change.views.length > 1 ? "stand" : "stands"} still. `;
  return h("div", { class: "problem", role: "alert" }, h("strong", {}, message), h("a", { href: "/evolution" }, "Evolution"));
}

function viewsOf(moment) {
  const rows = Object.entries(moment.views).map(([name, view]) => [
    h("a", { href: `/views/${encodeURIComponent(name)}` }, name),
    view.level ?? "–",
    view.protocol ?? "–",
    h("span", { class: "number", data: { figure: `rows-${name}` } }, number(view.rows)),
    freshness(view),
    h("span", {}, badge(view.health.verdict), h("span", { class: "reason" }, view.health.reason)),
  ]);
  if (!rows.length) {
    return empty("There are no views yet.", h("p", {}, "Write a SELECT into a file in the folder views, then: ", h("code", {}, "viewkeeper run")));
  }
  const heads = ["View", term("level"), term("protocol"), "Rows", term("freshness"), term("health")];
  return table("Views as they are now", heads, rows);
}

function freshness(view) {
  if (view.freshness_seconds === null) return h("span", { class: "soft" }, "not kept now");
  const target = view.target_seconds === null ? "no target" : `target ${seconds(view.target_seconds)}`;
  return h("span", {}, `${seconds(view.freshness_seconds)} `, h("span", { class: "soft" }, `(${target})`));
}

function sourcesOf(moment) {
  const rows = Object.entries(moment.sources).map(([name, source]) => [
    h("strong", {}, name),
    kind(source.kind) || "–",
    badge(source.verdict, state(source.state)),
    source.position_text,
    lag(source),
    bytes(source.retained_bytes),
    h("span", { class: "number" }, number(source.queries)),
    h("span", { class: "number" }, number(source.rows_fetched)),
  ]);
  if (!rows.length) return empty("The project names no source.", h("p", {}, "Add [sources.NAME] to viewkeeper.toml."));
  const heads = ["Source", "Kind", "State", term("position"), term("lag"), term("log kept"), term("queries"), term("rows fetched")];
  return table("Sources as they are now", heads, rows);
}

function lag(source) {
  if (source.error) return `not seen for ${seconds(source.unseen_seconds)}`;
  if (source.behind_seconds !== null && source.behind_seconds !== undefined) return seconds(source.behind_seconds);
  return source.lag_bytes === null || source.lag_bytes === undefined ? "–" : bytes(source.lag_bytes);
}

function legend() {
  const key = (verdict, words) => h("li", {}, h("span", { class: "edge-key", data: { verdict }, "aria-hidden": "true" }), words);
  return h(
    "ul",
    { class: "legend" },
    key("good", "up to date"),
    key("warning", "more than 5 s behind"),
    key("bad", "more than 30 s behind, or the source is away"),
    key("idle", "nobody keeps it now"),
  );
}
