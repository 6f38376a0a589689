// A view's definition as it is written, and the versions of it that the warehouse remembers.

import { h } from "./dom.js";
import { number, time } from "./format.js";
import { code } from "./parts.js";

export function definition(found) {
  const [newest, ...older] = found.versions;
  const pending = newest && !found.is_kept_as_written;
  return [
    pending ? h("p", { class: "note" }, "The text in the folder is not the one that is kept now; the next run loads it.") : null,
    code(found.text ?? "", { "aria-label": "The view's text" }),
    newest ? h("p", { class: "soft" }, `Version ${newest.version}, since transaction ${number(newest.since_txn)}, ${time(newest.committed_at)}`) : null,
    older.map((version) =>
      h(
        "details",
        {},
        h("summary", {}, `Version ${version.version}, since transaction ${number(version.since_txn)}, ${time(version.committed_at)}`),
        code(version.text, { "aria-label": `The text of version ${version.version}` }),
      ),
    ),
  ];
}
