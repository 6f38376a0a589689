// The view update table in the paper's colours; letters say the same to those who see no colours.

import { h } from "./dom.js";

const MEANINGS = {
  white: ["w", "its change has not arrived"],
  red: ["r", "its change is here and waits"],
  gray: ["g", "applied"],
  black: ["b", "does not concern the view"],
};

/** A coloured cell. `text` as the paper prints it, with a state for PA. */
export function cell(colour, text = MEANINGS[colour][0]) {
  return h("td", { class: "paint", data: { colour } }, h("span", { "aria-hidden": "true" }, text), h("span", { class: "unseen" }, `${colour}: ${MEANINGS[colour][1]}`));
}

/** A table: rows of {name, cells: [{colour, text}], note}. */
export function paintingTable(caption, firstHead, views, rows, lastHead) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      { class: "painting" },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, firstHead), views.map((view) => h("th", { scope: "col" }, view)), h("th", { scope: "col" }, lastHead))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.name), row.cells.map((each) => cell(each.colour, each.text)), h("td", {}, row.note)))),
    ),
  );
}

export function colourLegend() {
  return h(
    "ul",
    { class: "legend" },
    Object.entries(MEANINGS).map(([colour, [letter, meaning]]) => h("li", {}, h("span", { class: "paint-key", data: { colour }, "aria-hidden": "true" }, letter), `${colour}: ${meaning}`)),
  );
}
