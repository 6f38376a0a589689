// What several pages use: badges, figures, tables, problems.

import { h, value } from "./dom.js";
import { number } from "./format.js";

const MARKS = { good: "✓", idle: "○", warning: "!", bad: "✗" };
const WORDS = { good: "well", idle: "idle", warning: "attention", bad: "bad" };

/** A verdict, told by colour, mark and word. */
export function badge(verdict, text = WORDS[verdict]) {
  return h(
    "span",
    { class: "badge", data: { verdict } },
    h("span", { "aria-hidden": "true" }, MARKS[verdict] ?? "·"),
    ` ${text}`,
  );
}

/** One figure with its name. */
export function figure(name, ...shown) {
  return h("div", { class: "figure" }, h("dt", {}, name), h("dd", {}, ...shown));
}

export function figures(...all) {
  return h("dl", { class: "figures" }, ...all);
}

export function section(title, ...children) {
  return h("section", { class: "card" }, h("h2", {}, title), ...children);
}

/** A table whose rows stand as cards where the page is narrow. Heads and cells: text or nodes. */
export function table(caption, heads, rows) {
  const labels = heads.map((head) => (head instanceof Node ? head.querySelector("button").textContent : head));
  // Roles are said, because a table that is laid out otherwise is no table to some readers.
  const cells = (row) => row.map((cell, index) => h("td", { role: "cell", data: { label: labels[index] } }, cell));
  return h(
    "table",
    { class: "stack", role: "table" },
    h("caption", {}, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads.map((head) => h("th", { scope: "col", role: "columnheader" }, head)))),
    h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, cells(row)))),
  );
}

/** Rows of a view with their counts; signed, they are a change. */
export function rowsTable(caption, columns, rows, { signed = false } = {}) {
  const heads = [signed ? "change" : "times", ...columns.map((column) => column.name ?? column)];
  const body = rows.map((row) =>
    h(
      "tr",
      { class: signed ? (row.count > 0 ? "came" : "went") : null },
      h("td", { class: "count" }, signed ? signedCount(row.count) : `${number(row.count)}×`),
      ...row.values.map((found) => h("td", {}, value(found))),
    ),
  );
  if (!body.length) body.push(h("tr", {}, h("td", { colspan: heads.length, class: "soft" }, signed ? "no difference" : "no rows")));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: "rows" },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, body),
    ),
  );
}

function signedCount(count) {
  const times = Math.abs(count) > 1 ? ` ${Math.abs(count)}×` : "";
  return `${count > 0 ? "+" : "−"}${times}`;
}

/** What could not be done, with detail and hint. */
export function problem(error) {
  const fields = error.fields ?? error;
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, h("strong", {}, fields.message ?? String(error))),
    fields.detail ? h("p", {}, fields.detail) : null,
    fields.hint ? h("p", {}, "What helps: ", fields.hint) : null,
  );
}

export function empty(title, ...children) {
  return h("div", { class: "empty" }, h("p", {}, h("strong", {}, title)), ...children);
}

/** SQL as it is written. */
export function code(text, properties = {}) {
  return h("pre", { tabindex: "0", ...properties }, h("code", {}, text.trim()));
}
