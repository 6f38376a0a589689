// The evolution page: schema changes as a timeline, what each does to each view, and the decision.

import { get, post } from "../api.js";
import { h, show } from "../dom.js";
import { number, time } from "../format.js";
import { badge, code, empty, problem } from "../parts.js";

export async function mount(root) {
  document.title = "Evolution · Viewkeeper";
  const told = h("div", { role: "status" });
  const list = h("div", {});
  root.replaceChildren(
    h("h1", {}, "Evolution"),
    h("p", {}, "When a source changes its schema, the views over it are rewritten. What needs a person's word waits here for it."),
    told,
    list,
  );
  let seen = null;

  async function refresh() {
    const { changes } = await get("/api/evolution");
    show(list, changes.length ? h("ol", { class: "timeline" }, changes.map(changeOf)) : nothing());
  }

  list.addEventListener("click", async (event) => {
    const press = event.target.closest("button[data-change]");
    if (!press) return;
    const { change, decision } = press.dataset;
    try {
      await post(`/api/evolution/${encodeURIComponent(change)}`, { decision });
      show(told, h("p", { class: "note" }, decision === "approve" ? "Approved. The run takes it up." : "Rejected. The views stay as they are."));
    } catch (error) {
      show(told, problem(error));
    }
    await refresh();
    told.scrollIntoView({ block: "nearest" });
  });
  await refresh();
  return {
    async update(moment) {
      const news = `${moment.entry} ${moment.changes_waiting} ${moment.state}`;
      if (news === seen) return;
      seen = news;
      await refresh();
    },
  };
}

function nothing() {
  return h("section", { class: "card" }, empty("No schema has changed.", h("p", {}, "A column that is renamed, added or dropped at a source shows here, with what it means for every view.")));
}

const VERDICTS = { pending: "warning", applied: "good", rejected: "idle" };

function changeOf(change) {
  return h(
    "li",
    { class: "card", data: { status: change.status } },
    h(
      "div",
      { class: "heading" },
      h("h2", {}, `${change.source}: ${change.relation}`),
      badge(VERDICTS[change.status] ?? "idle", statusOf(change)),
    ),
    h("p", { class: "soft" }, [change.at ? time(change.at) : null, change.txn === null || change.txn === undefined ? null : `at transaction ${number(change.txn)}`, change.cost ? `cost: ${change.cost}` : null].filter(Boolean).join(" · ")),
    code(change.statement, { "aria-label": "The statement at the source" }),
    change.effects.map(effectOf),
    change.effects.length ? null : h("p", { class: "soft" }, "No view reads it."),
    change.status === "pending" && !change.decision ? decisions(change) : null,
  );
}

function statusOf(change) {
  if (change.status !== "pending" || !change.decision) return change.status === "pending" ? "waits for your word" : change.status;
  return change.decision.decision === "approve" ? "approved, not applied yet" : "rejected, not settled yet";
}

function effectOf(effect) {
  const [before, after] = [lines(effect.before), lines(effect.after)];
  return h(
    "div",
    { class: "effect" },
    h("h3", {}, "View ", h("a", { href: `/views/${encodeURIComponent(effect.view)}` }, effect.view), effect.effect ? `: ${effect.effect}` : ""),
    effect.cost ? h("p", { class: "soft" }, `cost: ${effect.cost}`) : null,
    h("div", { class: "split" }, side("Before", before, new Set(after), "gone"), side("After", after, new Set(before), "new")),
  );
}

const lines = (text) => (text ?? "").trim().split("\n");

function side(title, mine, theirs, mark) {
  const shown = mine.map((line) => h("span", { class: theirs.has(line) ? "line-same" : `line-${mark}` }, `${line}\n`));
  return h("div", {}, h("p", { class: "soft" }, title), h("pre", { tabindex: "0", "aria-label": title }, h("code", {}, shown)));
}

function decisions(change) {
  const press = (decision, kind, words) => h("button", { class: kind, type: "button", data: { change: change.id, decision } }, words);
  return h("p", { class: "decisions" }, press("approve", "main", "Approve"), " ", press("reject", "plain", "Reject"));
}
