// A message sequence chart: one lane per place, time downwards, an arrow from where a message left to
// where it arrived. What has not happened yet is faint.

import { h, s } from "../dom.js";

const ROW = 30;

export function sequence(run, onChoose) {
  // Half of the room at most: the words beside the lanes must be read too.
  const room = Math.min(330, window.innerWidth / 2.2);
  const lane = Math.max(38, Math.min(84, Math.floor(room / run.lanes.length)));
  const width = lane * run.lanes.length;
  const height = run.steps.length * ROW;
  const x = Object.fromEntries(run.lanes.map((name, index) => [name, lane * (index + 0.5)]));
  const y = (index) => (index + 0.5) * ROW;
  const chart = s(
    "svg",
    { class: "lanes", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    run.lanes.map((name) => s("line", { class: "lane", x1: x[name], x2: x[name], y1: 0, y2: height })),
    run.steps.map((step, index) => s("g", { class: "step", "data-step": index }, arrow(run, step, index, x, y), mark(step, x, y(index)))),
  );
  const items = run.steps.map((step, index) =>
    h("li", { data: { step: index } }, h("button", { type: "button", onclick: () => onChoose(index) }, step.text || `${step.receives} arrives`)),
  );
  const element = h(
    "div",
    { class: "sequence", tabindex: "0", role: "region", "aria-label": "Messages in order" },
    h("div", { class: "lane-names", "aria-hidden": "true" }, run.lanes.map((name) => nameOf(name, lane))),
    chart,
    h("ol", {}, items),
  );
  return { element, to: (index) => point(element, items, index) };
}

function point(element, items, index) {
  for (const each of element.querySelectorAll("[data-step]")) {
    each.classList.toggle("future", Number(each.dataset.step) > index);
    each.classList.toggle("current", Number(each.dataset.step) === index);
  }
  for (const [number, item] of items.entries()) {
    if (number === index) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
  // Only this box scrolls, never the page.
  element.scrollTop = index * ROW - element.clientHeight / 2;
}

function arrow(run, step, index, x, y) {
  const [from, to] = ends(run, step, index);
  if (from === null) return null;
  const [x1, y1, x2, y2] = [x[from.place], y(from.index), x[to], y(index)];
  const direction = Math.sign(x2 - x1) || 1;
  const tip = x2 - direction * 3;
  const label = step.receives || step.sends;
  return [
    s("line", { class: `message ${kindOf(label, step)}`, x1, y1, x2: tip, y2 }),
    s("path", { class: `tip ${kindOf(label, step)}`, d: `M${tip} ${y2} l${-direction * 8} -4 v8 z` }),
    label ? s("text", { class: "message-label", x: x1 + (x2 - x1) * 0.3, y: y1 + (y2 - y1) * 0.3 - 4, "text-anchor": "middle" }, label) : null,
  ];
}

/** Where the message that arrives at this step left, and where it arrives. */
function ends(run, step, index) {
  if (!step.receives) return [null];
  const left = lastIndex(run.steps, index, (each) => each.sends === step.receives && each.place === step.arrow);
  return left === null ? [null] : [{ place: step.arrow, index: left }, step.place];
}

function lastIndex(steps, before, matches) {
  for (let index = before - 1; index >= 0; index -= 1) if (matches(steps[index])) return index;
  return null;
}

function kindOf(label, step) {
  if (label.startsWith("#")) return "notice";
  if (label.startsWith("?") || step.kind === "answer") return "question";
  return "answer";
}

function mark(step, x, y) {
  const at = x[step.place];
  const marks = {
    commit: () => s("circle", { class: "mark-commit", cx: at, cy: y, r: 6 }),
    install: () => s("path", { class: "mark-install", d: `M${at} ${y - 8} l8 8 -8 8 -8 -8z` }),
    start: () => s("path", { class: "mark-install", d: `M${at} ${y - 8} l8 8 -8 8 -8 -8z` }),
    ask: () => s("rect", { class: "mark-ask", x: at - 5, y: y - 5, width: 10, height: 10 }),
    reveal: () => s("circle", { class: "mark-reveal", cx: at, cy: y, r: 6 }),
  };
  return marks[step.kind]?.() ?? null;
}

function nameOf(name, width) {
  const shown = h("span", { title: name }, name);
  shown.style.width = `${width}px`;
  return shown;
}
