// Words that need explaining, and the mark-up that explains them: on hover, on focus, to screen readers.

import { h } from "./dom.js";

const MEANINGS = {
  transaction: "Every transaction of every source gets a number in order of arrival. Each one is a state of the views that can be read.",
  commit: "The warehouse takes in many transactions at once, all views together or none. Each transaction is still a state of its own.",
  level: "How right a view is at every moment. Convergent: right once all is quiet. Strong: every state is the view at some moment, in order. Complete: and no transaction is left out.",
  protocol: "The way of keeping a view up to date: who is asked what when a source changes.",
  freshness: "How old the newest change was when readers could see it, or for how long a source has not been heard of. The target is what the view's text asks for.",
  health: "The worst of three: does a run keep the view, is it fresh enough, did the last audit find it right.",
  lag: "How long a change at the source has been waiting for us.",
  "log kept": "How much of its log the source holds back for us. It grows while we are away.",
  position: "How far the source's log has been read into the warehouse.",
  queries: "Questions asked of the source to complete changes, since this dashboard was started.",
  "rows fetched": "Rows that came back as answers, since this dashboard was started.",
  cut: "For each source, how far its log is included in this state.",
  part: "The fragment of the view that one source could answer alone.",
  audit: "The view is computed anew from its sources, at exactly the warehouse's state, and compared row by row.",
  phases: "Where the time of a batch goes: capture (waiting for the sources' logs), ask (questions to sources), join (computing the change), commit (writing).",
  "view update table": "One row per transaction, one column per view. A row is applied when all of it has arrived and all that must come before it.",
  "ΔV": "The change of the view: rows that come in, and rows that go out (−).",
  V: "The view's rows now, with how often each occurs.",
  "action list": "The change of one view for one or more transactions, as its view manager delivers it.",
  staleness: "Transactions that are committed at the sources and not yet shown by the view.",
};

/** A word with its explanation. `place` tells apart several of the same word on a page. */
export function term(word, { place = "", as = word[0].toUpperCase() + word.slice(1) } = {}) {
  const id = `term-${word}-${place}`.replaceAll(/[^\wΔ-]/gu, "-");
  return h(
    "span",
    { class: "term" },
    h("button", { type: "button", "aria-describedby": id }, as),
    h("span", { role: "tooltip", id }, MEANINGS[word]),
  );
}

/** The words of a page with their meanings, for those who neither hover nor tab. */
export function glossary(...words) {
  return h(
    "details",
    { class: "words" },
    h("summary", {}, "Words on this page"),
    h("dl", {}, words.map((word) => [h("dt", {}, word), h("dd", {}, MEANINGS[word])])),
  );
}
