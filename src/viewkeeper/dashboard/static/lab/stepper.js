// Going forward and back through steps: buttons, a slider, and the arrow keys.

import { h } from "../dom.js";

/** Calls `onStep(index)`; `load(count)` begins anew with so many steps. */
export function stepper(onStep) {
  const press = (label, key, go) => h("button", { class: "plain", type: "button", "aria-label": label, onclick: () => to(go()) }, key);
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Step" });
  const told = h("span", { class: "number", "aria-live": "polite" });
  let [at, count] = [0, 1];

  function to(index) {
    at = Math.min(Math.max(index, 0), count - 1);
    slider.value = at;
    told.textContent = `step ${at + 1} of ${count}`;
    onStep(at);
  }

  slider.addEventListener("input", () => to(Number(slider.value)));
  const element = h(
    "div",
    { class: "stepper", role: "group", "aria-label": "Steps" },
    press("First step", "|◀", () => 0),
    press("Step back", "◀", () => at - 1),
    press("Step forward", "▶", () => at + 1),
    press("Last step", "▶|", () => count - 1),
    slider,
    told,
  );
  return {
    element,
    to,
    /** The arrow keys, for a region of the page; fields keep theirs. */
    listenTo(region) {
      region.addEventListener("keydown", (event) => {
        if (event.target.matches("input, select, textarea")) return;
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        to(at + step);
      });
    },
    load(number, start = 0) {
      count = Math.max(number, 1);
      slider.max = count - 1;
      to(start);
    },
  };
}
