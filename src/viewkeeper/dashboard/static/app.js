// Finds the page that the address means, mounts it, and hands it every moment.

import { listen, login, opened } from "./api.js";
import { h, show } from "./dom.js";
import { number } from "./format.js";
import { problem } from "./parts.js";

const PAGES = [
  [/^\/$/, () => import("./pages/overview.js")],
  [/^\/views\/([^/]+)$/, () => import("./pages/view.js")],
  [/^\/merge$/, () => import("./pages/merge.js")],
  [/^\/evolution$/, () => import("./pages/evolution.js")],
  [/^\/lab$/, () => import("./pages/lab.js")],
];

const root = document.getElementById("page");
const pulse = document.getElementById("pulse");

function markPage() {
  for (const link of document.querySelectorAll(".top nav a")) {
    const here = link.pathname === location.pathname;
    if (here) link.setAttribute("aria-current", "page");
  }
}

function tellPulse(moment, isConnected) {
  pulse.dataset.state = isConnected ? moment.health.verdict : "bad";
  pulse.textContent = isConnected
    ? `${moment.state === "running" ? "Live" : `Run: ${moment.state}`} · transaction ${number(moment.frontier)}`
    : "Connection lost, trying again …";
}

async function start() {
  markPage();
  if (!(await opened())) return askForToken();
  const [match, load] = PAGES.map(([path, found]) => [location.pathname.match(path), found]).find(([found]) => found);
  const page = await (await load()).mount(root, ...match.slice(1).map(decodeURIComponent));
  let last = null;
  listen(
    (moment) => {
      last = moment;
      tellPulse(moment, true);
      page.update?.(moment);
      root.dataset.moment = moment.now;
    },
    (isConnected) => (isConnected || last === null) || tellPulse(last, false),
  );
}

function askForToken() {
  pulse.textContent = "Locked";
  const field = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const told = h("p", { role: "alert" });
  const form = h(
    "form",
    { class: "card narrow" },
    h("h1", {}, "Token"),
    h("p", {}, "This dashboard is opened with the token that ", h("code", {}, "viewkeeper ui"), " printed."),
    h("label", { for: "token" }, "Token"),
    field,
    h("button", { class: "main" }, "Open"),
    told,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await login(field.value.trim());
      location.reload();
    } catch (error) {
      told.textContent = error.message;
    }
  });
  show(root);
  root.append(form);
  field.focus();
}

start().catch((error) => {
  show(root);
  root.append(problem(error));
});
