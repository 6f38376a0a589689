"""The query engine: the lower level of concurrency control.

Paper: DyDa, section 5.1. Whoever asks uses the names of the view and names the cut that is wanted. What
happens meanwhile at the source is dealt with here, as far as it can be:

- *Data changes* are corrected locally: the answer says what it reflects, the changes are known.
- *Renames* are mapped. Case 1: renames that have arrived are applied before a query is sent. Case 2: a
  query that comes back broken is sent again under the names that are known by then; chains collapse.
- *Drops* (and changed types) are reported with their cause, which is among the updates received (lemma
  3), and the process that asked is given up.

Where we differ: the paper takes an answer that is not an error for a right one. After ``a → c, b → a`` a
query for ``a`` succeeds and gives the values of ``b``. So an answer that reflects a schema change which
its query did not know, and which touches what it asked for, counts as broken too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import InvariantViolated, invariant
from viewkeeper.evolution.changes import SchemaChanged
from viewkeeper.evolution.messages import QueryBroken, ReadRelation, RowsArrived
from viewkeeper.evolution.naming import Names, after_all
from viewkeeper.evolution.reading import Read
from viewkeeper.evolution.update_log import UpdateLog


@dataclass(frozen=True)
class _Asked:
    read: Read
    sent: Names
    # Schema changes of the source up to this number were known when it was sent.
    knowing: int


@dataclass(frozen=True)
class Answered:
    """The rows of a read, as wanted, by the view's names."""

    rows: Any


@dataclass(frozen=True)
class Interrupted:
    """The read can't be answered any more: a concurrent schema change was detected (CSCd)."""

    cause: SchemaChanged


Outcome = ReadRelation | Answered | Interrupted


class QueryEngine:
    """Sends reads and takes answers in. One question is open at a time."""

    def __init__(self, log: UpdateLog) -> None:
        self.log = log
        self._questions = 0
        self._open: dict[int, _Asked] = {}

    def ask(self, read: Read) -> ReadRelation | Interrupted:
        """The read as a query; interrupted at once when what it asks for is known to be gone."""
        names = Names(read.name, read.schema.names)
        sent = self.mapped(names)
        if sent is None:
            return self._interrupted(names)
        self._questions += 1
        source = sent.relation.source
        self._open[self._questions] = _Asked(read, sent, self.log.latest_change(source))
        column = dict(zip(read.schema.names, sent.columns, strict=True))
        return ReadRelation(
            self._questions,
            source,
            sent.relation.relation,
            sent.columns,
            tuple(column[name] for name in read.key_columns),
            read.keys,
        )

    def mapped(self, names: Names) -> Names | None:
        """The view's names as the source has them; deliberately wrong variants override this."""
        return self.log.names_now(names)

    def rows_arrived(self, answer: RowsArrived) -> Outcome | None:
        """None when the question belongs to a process that was given up."""
        asked = self._open.pop(answer.question, None)
        if asked is None:
            return None
        unknown = self.log.changes_reflected(
            asked.sent.relation.source, asked.knowing, answer.reflects
        )
        if after_all(asked.sent, unknown) != asked.sent:
            return self.ask(asked.read)
        rows = answer.rows.renamed(asked.read.schema.names)
        return Answered(self.corrected(asked.read, rows, answer))

    def corrected(self, read: Read, rows: Any, answer: RowsArrived) -> Any:
        """Local correction; deliberately wrong variants override this."""
        correction = self.log.correction(read, answer.reflects)
        return rows if correction is None else rows + correction

    def broken(self, event: QueryBroken) -> Outcome | None:
        """Ask again under other names, or say which schema change is the cause."""
        asked = self._open.pop(event.question, None)
        if asked is None:
            return None
        names = Names(asked.read.name, asked.read.schema.names)
        explained = self.mapped(names) != asked.sent
        invariant(explained, f"a query of {names.relation} broke, and no schema change explains it")
        return self.ask(asked.read)

    def _interrupted(self, names: Names) -> Interrupted:
        cause = self.log.losing(names)
        if cause is None:
            raise InvariantViolated(f"{names.relation} is lost, and no schema change is the cause")
        return Interrupted(cause)
