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

const VERDICTS = { pending: "warning", frozen: "bad", adapting: "warning", applied: "good", rejected: "idle" };

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
    decisions(change),
  );
}

const STATUSES = {
  pending: "waits for your word",
  frozen: "frozen: the views stay as they are",
  adapting: "its rows are being read",
  applied: "applied",
  rejected: "rejected",
};

function statusOf(change) {
  const made = change.decision?.decision;
  if (made === "approve" && change.status !== "applied") return "approved, not applied yet";
  if (made === "reject" && change.status === "pending") return "rejected, not settled yet";
  return STATUSES[change.status] ?? change.status;
}

const EFFECTS = {
  renamed: "goes on under other names",
  "column offered": "could have a new column",
  "read anew": "is read anew",
  synchronized: "gets another definition",
  retired: "can't be kept any more",
  stopped: "stops: its text does not fit any more",
};
const ADAPTATIONS = {
  kept: "its rows stay as they are",
  "map-va": "only the difference is asked of the sources",
  recompute: "all its rows are computed anew",
};

function effectOf(effect) {
  const [before, after] = [lines(effect.before), lines(effect.after)];
  const facts = [effect.reason, ADAPTATIONS[effect.adaptation], effect.adaptation_reason, effect.cost ? `cost: ${effect.cost}` : null];
  return h(
    "div",
    { class: "effect" },
    h("h3", {}, "View ", h("a", { href: `/views/${encodeURIComponent(effect.view)}` }, effect.view), effect.effect ? `: ${EFFECTS[effect.effect] ?? effect.effect}` : ""),
    h("p", { class: "soft" }, facts.filter(Boolean).join("; ")),
    h("div", { class: "split" }, side("Before", before, new Set(after), "gone"), effect.after ? side("After", after, new Set(before), "new") : h("p", {}, "Nothing follows.")),
    effect.mapping?.length ? h("details", {}, h("summary", {}, "What became of what"), h("ul", {}, effect.mapping.map((line) => h("li", {}, line)))) : null,
  );
}

const lines = (text) => (text ?? "").trim().split("\n");

function side(title, mine, theirs, mark) {
  const shown = mine.map((line) => h("span", { class: theirs.has(line) ? "line-same" : `line-${mark}` }, `${line}\n`));
  return h("div", {}, h("p", { class: "soft" }, title), h("pre", { tabindex: "0", "aria-label": title }, h("code", {}, shown)));
}

/** What is not applied can be decided, and what was rejected can be taken back. */
function decisions(change) {
  const made = change.decision?.decision;
  const offered = ["applied", "adapting"].includes(change.status) ? [] : ["approve", "reject"].filter((each) => each !== made && !(each === "reject" && change.status !== "pending"));
  if (!offered.length || made === "approve") return null;
  const words = { approve: ["main", "Approve"], reject: ["plain", "Reject"] };
  return h(
    "p",
    { class: "decisions" },
    offered.map((each) => [h("button", { class: words[each][0], type: "button", data: { change: change.id, decision: each } }, words[each][1]), " "]),
  );
}
