// The ring: its nodes in a circle, the token where it is or between two of them, and what it carries.

import { h, s } from "../dom.js";

const SIZE = 260;

export function ring(token) {
  const count = token.ring.length;
  const place = (index) => {
    const angle = (2 * Math.PI * index) / count - Math.PI / 2;
    return [SIZE / 2 + 88 * Math.cos(angle), SIZE / 2 + 88 * Math.sin(angle)];
  };
  const at = Object.fromEntries(token.ring.map((name, index) => [name, place(index)]));
  at.warehouse = [SIZE / 2, SIZE / 2];
  const from = at[token.at];
  const to = token.to ? at[token.to] : null;
  const spot = to ? [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2] : [from[0] + 22, from[1] - 16];
  const where = token.to ? `The token is on its way from ${token.at} to ${token.to}` : `The token is at ${token.at}`;
  return h(
    "div",
    { class: "ring" },
    s(
      "svg",
      { viewBox: `0 0 ${SIZE} ${SIZE}`, width: SIZE, height: SIZE, role: "img", "aria-label": where },
      s("circle", { class: "lane", cx: SIZE / 2, cy: SIZE / 2, r: 88, fill: "none" }),
      [...token.ring, "warehouse"].map((name) => [
        s("circle", { class: `ring-node${name === token.at ? " here" : ""}`, cx: at[name][0], cy: at[name][1], r: name === "warehouse" ? 42 : 25 }),
        s("text", { class: "lane-name", x: at[name][0], y: at[name][1] + 4, "text-anchor": "middle" }, name),
      ]),
      s("circle", { class: "token", cx: spot[0], cy: spot[1], r: 9 }),
    ),
    h("div", {}, h("p", {}, where), h("ul", {}, Object.entries(token.carries).map(([source, rows]) => h("li", {}, `${source}: `, rows ?? h("span", { class: "soft" }, "nothing"))))),
  );
}
