// All words must be in a page; a page whose title has them comes first. No server, no network.
const field = document.getElementById("search");
const list = document.getElementById("found");

function results(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return window.searchIndex
    .map((page) => {
      const title = page.title.toLowerCase();
      if (!words.every((word) => title.includes(word) || page.words.includes(word))) return null;
      const weight = words.filter((word) => title.includes(word)).length;
      return { page, weight, at: page.words.indexOf(words[0]) };
    })
    .filter(Boolean)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 12);
}

function entry({ page, at }) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `${window.siteRoot}/${page.address}`;
  link.textContent = page.title;
  const around = document.createElement("small");
  around.textContent = at < 0 ? "" : `… ${page.words.slice(Math.max(0, at - 30), at + 70)} …`;
  link.append(around);
  item.append(link);
  return item;
}

field.addEventListener("input", () => {
  const found = results(field.value);
  list.replaceChildren(...found.map(entry));
  list.hidden = !found.length;
});
field.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { field.value = ""; list.hidden = true; }
  if (event.key === "Enter") list.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
});
