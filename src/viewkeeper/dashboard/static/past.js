// A view's recent past as charts: freshness, transactions per second, rows changed, time per phase.

import { chart } from "./charts.js";
import { h } from "./dom.js";
import { number, seconds } from "./format.js";
import { term } from "./terms.js";

const PHASES = ["capture", "ask", "join", "commit"];
const BUCKET_MS = 5000;

export function pastCharts(found) {
  const batches = found.batches.filter((batch) => batch.at);
  const clock = (at) => new Date(at).toLocaleTimeString("en-GB");
  const overBatches = (of) => batches.map((batch) => [Date.parse(batch.at), of(batch) ?? 0]);
  return [
    card("Freshness over time", chart({ label: "Freshness of each batch", lines: [{ name: "freshness", points: overBatches((batch) => batch.freshness_seconds) }], x: clock, y: seconds })),
    card("Transactions per second", chart({ label: "Transactions per second", lines: [{ name: "transactions", points: rates(found.epochs, (epoch) => epoch.transactions), colour: 2 }], x: clock, y: short })),
    card(
      term("phases", { place: "past", as: "Time per phase" }),
      chart({ label: "Time of each phase of a batch", lines: PHASES.map((phase) => ({ name: phase, points: overBatches((batch) => batch.seconds[phase]) })), x: clock, y: seconds }),
    ),
    card(
      "Rows changed per second",
      chart({
        label: "Rows that came in and went out, per second",
        lines: [
          { name: "in", points: rates(found.epochs, (epoch) => epoch.inserted), colour: 2 },
          { name: "out", points: rates(found.epochs, (epoch) => epoch.deleted), colour: 1 },
        ],
        x: clock,
        y: short,
      }),
    ),
  ];
}

function card(title, drawn) {
  return h("section", { class: "card" }, h("h2", {}, title), drawn);
}

const short = (value) => number(Number(value.toPrecision(3)));

/** Sums per second in even slices of time; slices in which nothing happened are zero. */
function rates(epochs, of) {
  // The load of a view is no traffic.
  const counted = epochs.filter((epoch) => epoch.transactions > 0);
  if (!counted.length) return [];
  const slice = (epoch) => Math.floor(Date.parse(epoch.at) / BUCKET_MS);
  const [first, last] = [slice(counted[0]), slice(counted.at(-1))];
  // A long pause is not drawn second by second.
  const start = Math.max(first, last - 120);
  const sums = new Array(last - start + 1).fill(0);
  for (const epoch of counted) if (slice(epoch) >= start) sums[slice(epoch) - start] += of(epoch);
  return sums.map((sum, index) => [(start + index) * BUCKET_MS, sum / (BUCKET_MS / 1000)]);
}
