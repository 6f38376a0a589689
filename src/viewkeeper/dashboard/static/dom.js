// Elements from plain values. Text is only ever set as text: nothing from a source becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Properties: `class`, `on…` listeners, `data`, everything else an attribute. */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function s(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make `old` look like `fresh` and keep its elements, so that focus and selection stay. */
export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, index) => (index < before.length ? morph(before[index], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
}

/** Fill a region of the page anew, keeping what is the same. */
export function show(region, ...children) {
  const fresh = region.cloneNode(false);
  fresh.append(...children.flat(Infinity).filter(Boolean));
  morph(region, fresh);
}

// Marks that would turn the text around them are shown by their names.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;

/** A value from a source as text that stays what it is: isolated, with invisible marks made visible. */
export function value(found) {
  if (found === null) return h("span", { class: "null" }, "NULL");
  if (typeof found === "object" && "beginning" in found) {
    const rest = `… ${found.length.toLocaleString("en")} characters`;
    return h("span", {}, value(found.beginning.slice(0, 200)), h("span", { class: "soft" }, rest));
  }
  const text = typeof found === "string" ? found : JSON.stringify(found);
  const parts = [];
  let end = 0;
  for (const mark of text.matchAll(HIDDEN)) {
    const code = mark[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    parts.push(text.slice(end, mark.index), h("span", { class: "mark" }, `U+${code}`));
    end = mark.index + mark[0].length;
  }
  return h("bdi", { class: typeof found === "number" ? "number" : null }, ...parts, text.slice(end));
}
