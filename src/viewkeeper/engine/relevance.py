"""Which views some transactions concern: those that read what they changed, unless conditions rule every row out. Pure.

Both what was taken out and what was put in counts: a row that ceases to satisfy a condition leaves the view. To be wrong in
one direction costs nothing but a job that finds no change, so the number of rows that are looked at is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from viewkeeper.algebra.types import Row
from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.view import View
from viewkeeper.sources.transaction_block import ChangedRows
from viewkeeper.views.definition import RelationName
from viewkeeper.views.relevance import RowTest

# Of a relation, this many changed rows are looked at for one that satisfies a view's condition.
ROWS_LOOKED_AT_MAX = 1_000


def changed_by(arrivals: Iterable[Arrival]) -> set[RelationName]:
    return {name for arrival in arrivals for name, _ in arrival.transaction.changes}


# Views that read what was changed, each with the relations whose rows must be looked at; None: it is concerned.
_Readers = tuple[tuple[str, tuple[tuple[RelationName, RowTest], ...] | None], ...]


class Relevance:
    """Some views, and what each of them reads and rules out."""

    def __init__(self, views: Mapping[str, View]) -> None:
        self._views = views
        self._known: dict[frozenset[RelationName], _Readers] = {}

    def concerned(self, arrivals: Sequence[Arrival]) -> tuple[str, ...]:
        """The views that these transactions may change, in the group's order."""
        changed = frozenset(changed_by(arrivals))
        readers = self._known.get(changed)
        if readers is None:
            readers = self._known[changed] = tuple(self._readers(changed))
        return tuple(
            [
                view
                for view, tests in readers
                if tests is None or any(_satisfies(arrivals, *each) for each in tests)
            ]
        )

    def _readers(self, changed: frozenset[RelationName]) -> Iterator[Any]:
        """The views that read one of these relations."""
        for view, known in self._views.items():
            read = [name for name in known.definition.relations if name in changed]
            if read:
                tests = known.row_tests
                is_sure = any(name not in tests for name in read)
                yield view, None if is_sure else tuple((name, tests[name]) for name in read)


def _satisfies(arrivals: Iterable[Arrival], name: RelationName, test: RowTest) -> bool:
    """Whether a changed row of a relation passes a test, or there are too many to tell."""
    rows = _rows(arrivals, name)
    return any(map(test, islice(rows, ROWS_LOOKED_AT_MAX))) or next(rows, None) is not None


def _rows(arrivals: Iterable[Arrival], name: RelationName) -> Iterator[Row]:
    for arrival in arrivals:
        for changed, change in arrival.transaction.changes:
            if changed != name:
                continue
            if isinstance(change, ChangedRows):
                yield from change.first(ROWS_LOOKED_AT_MAX + 1)
            else:
                yield from change.deleted
                yield from change.inserted
