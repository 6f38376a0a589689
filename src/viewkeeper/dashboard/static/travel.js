// Time travel: a view's rows at any transaction that is kept, and the difference to another one.

import { newestAnswer } from "./api.js";
import { h, show } from "./dom.js";
import { many, number } from "./format.js";
import { problem, rowsTable } from "./parts.js";

const PAGE_ROWS = 50;

export function travel(name, found) {
  const path = `/api/views/${encodeURIComponent(name)}`;
  const oldest = Math.max(found.oldest_txn, found.since_txn ?? 0);
  let newest = found.newest_txn;
  const slider = h("input", { type: "range", id: "txn-slider", min: oldest, max: newest, value: newest, "aria-label": "Transaction, by slider" });
  const exact = h("input", { type: "number", id: "txn", min: oldest, max: newest, value: newest });
  const other = h("input", { type: "number", id: "other", min: oldest, max: newest, value: Math.max(oldest, newest - 1) });
  const rows = h("div", { "aria-live": "polite", class: "extent" });
  const change = h("div", { "aria-live": "polite", class: "difference" });
  const back = h("button", { class: "plain", type: "button" }, "Earlier rows");
  const forth = h("button", { class: "plain", type: "button" }, "More rows");
  let first = 0;

  const askRows = newestAnswer(
    (page) => {
      // A view that is ahead of the others is shown where they all have come to.
      const together = page.shows < page.txn ? ` (at one cut with the other views: as of ${number(page.shows)})` : "";
      const caption = `${many(page.total, "row")} at transaction ${number(page.txn)}${together}`;
      rows.replaceChildren(h("h3", {}, caption), rowsTable(caption, page.columns, page.rows));
      back.disabled = first === 0;
      forth.disabled = first + PAGE_ROWS >= page.distinct;
    },
    (error) => rows.replaceChildren(problem(error)),
  );
  const askDifference = newestAnswer(
    (page) => {
      const caption = `From transaction ${number(page.before)} to ${number(page.after)}: ${many(page.inserted, "row")} came, ${number(page.deleted)} went`;
      change.replaceChildren(h("h3", {}, caption), rowsTable(caption, page.columns, page.rows, { signed: true }));
    },
    (error) => change.replaceChildren(problem(error)),
  );
  const look = () => askRows(`${path}/rows`, { as_of: exact.value, first, limit: PAGE_ROWS });
  const compare = () => askDifference(`${path}/difference`, { before: other.value, after: exact.value });

  function to(txn) {
    [slider.value, exact.value, first] = [txn, txn, 0];
    other.value = Math.max(oldest, txn - 1);
    change.replaceChildren();
    return look();
  }

  slider.addEventListener("input", () => to(Number(slider.value)));
  exact.addEventListener("change", () => to(Number(exact.value)));
  back.addEventListener("click", () => ((first = Math.max(0, first - PAGE_ROWS)), look()));
  forth.addEventListener("click", () => ((first += PAGE_ROWS), look()));
  const element = h("div", {});
  if (found.since_txn === null) {
    show(element, h("p", { class: "soft" }, "There is no state to travel to yet."));
    return { element, to() {}, newest() {} };
  }
  element.append(
    h(
      "form",
      { class: "controls", onsubmit: (event) => (event.preventDefault(), compare()) },
      h("div", {}, h("label", { for: "txn" }, "Transaction"), exact),
      h("div", { class: "grow" }, slider),
      h("button", { class: "plain", type: "button", onclick: () => to(newest) }, "Newest"),
      h("div", {}, h("label", { for: "other" }, "Compare with"), other),
      h("button", { class: "main" }, "Compare"),
    ),
    change,
    rows,
    h("p", { class: "pager" }, back, " ", forth),
  );
  look();
  return {
    element,
    to(txn) {
      element.scrollIntoView({ block: "nearest" });
      return to(txn);
    },
    newest(txn) {
      newest = txn;
      for (const input of [slider, exact, other]) input.max = txn;
    },
  };
}
