// The merge page: the view update table of a running keeper, live, and what each row waits for.

import { h, show } from "../dom.js";
import { many, number, range } from "../format.js";
import { empty } from "../parts.js";
import { colourLegend, paintingTable } from "../painting.js";
import { glossary, term } from "../terms.js";

const ALGORITHMS = {
  spa: "simple painting: every transaction becomes a state of all its views at once",
  pa: "painting: changes that belong together are shown together",
  "complete-n": "complete-N: whole blocks of transactions are shown at once",
  "pass-through": "nothing is merged: each view moves by itself",
};

export function mount(root) {
  document.title = "Merge · Viewkeeper";
  const tables = h("div", {});
  root.replaceChildren(
    h("h1", {}, "Merge"),
    h("p", {}, "Several views over the same sources move together. The ", term("view update table", { place: "intro", as: "view update table" }), " says which transaction is complete, and what the others wait for."),
    tables,
    h("section", { class: "card" }, h("h2", {}, "Colours"), colourLegend()),
    glossary("view update table", "transaction", "action list"),
  );
  return { update: (moment) => show(tables, tablesOf(moment)) };
}

function tablesOf(moment) {
  const groups = moment.merge?.groups ?? [];
  if (!groups.length) {
    return h(
      "section",
      { class: "card" },
      empty(
        moment.state === "running" ? "Nothing is being merged now." : "No run is merging views now.",
        h("p", {}, "While a run keeps several views, their table stands here and is painted as changes arrive."),
        h("p", {}, h("a", { href: "/lab#painting" }, "The lab"), " paints the examples of the paper, step by step."),
      ),
    );
  }
  return groups.map((group, index) => groupOf(group, index, groups.length));
}

function groupOf(group, index, count) {
  const name = count > 1 ? `Group ${index + 1}: ${group.views.join(", ")}` : group.views.join(", ");
  const rows = group.rows.map((row) => ({
    name: h("span", { class: "number" }, row.txns ? range(row.txns[0], row.txns[1]) : batchOf(row)),
    cells: group.views.map((view) => cellOf(row.cells[view])),
    note: noteOf(row),
  }));
  return h(
    "section",
    { class: "card" },
    h("h2", {}, name),
    h("p", { class: "soft" }, ALGORITHMS[group.algorithm] ?? group.algorithm),
    rows.length ? paintingTable(`Transactions that are on their way into ${name}`, "Transactions", group.views, rows, "What it waits for") : empty("All that has arrived is applied."),
  );
}

/** A row is a batch: a run tells how many transactions it has as long as it is being worked on. */
function batchOf(row) {
  return row.transactions ? many(row.transactions, "transaction") : `batch ${number(row.row)}`;
}

function noteOf(row) {
  if (row.waits_for?.length) return `waits for ${row.waits_for.join(", ")}`;
  const isApplied = Object.values(row.cells).every((cell) => cell.colour === "gray" || cell.colour === "black");
  return isApplied ? "applied" : "complete: is applied when all before it are";
}

function cellOf(cell) {
  if (!cell) return { colour: "black" };
  return cell.state ? { colour: cell.colour, text: `${cell.colour[0]},${cell.state}` } : { colour: cell.colour };
}
