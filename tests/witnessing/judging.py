"""Every state that a group of views showed, against what the books have of the sources.

The level is decided by `viewkeeper.consistency.check`; what is done here is to find the cut that each
state claims to be. Plain copies of relations say it, which are views of the same group: where they stand
in their source's history, all views of the same state must stand. A state whose copies are those of no
moment, or of an earlier one than the state before, is wrong by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from viewkeeper.algebra import Bag, Schema
from viewkeeper.consistency import SourceHistories, Verdict, Violation, check
from viewkeeper.timeline import Cut
from viewkeeper.views import Level, RelationName, ViewDefinition
from viewkeeper.warehouse import Warehouse
from witnessing.books import Books

# For each source the views that are copies of its relations, each with the relation.
Pins = Mapping[str, Sequence[tuple[str, RelationName]]]


class Span(NamedTuple):
    """The states that are looked at."""

    first: int
    last: int


class NoMoment(Exception):
    """The copies of a state are those of no moment that it may be at."""

    def __init__(self, state: int, reason: str) -> None:
        super().__init__(reason)
        self.state = state


def verdict(
    warehouse: Warehouse,
    definitions: Iterable[ViewDefinition],
    books: Books,
    first_txn: int = 0,
    block: int = 1,
) -> Verdict:
    """The level of a group of views, from a state on, to which all that was committed belongs.

    ``block``: how many transactions a complete group has for each state.

    Each relation that the views read must have its copy among them, `copy_name` and `copy_text`.
    """
    views = list(definitions)
    relations = tuple(dict.fromkeys(name for view in views for name in view.relations))
    span = Span(first_txn, warehouse.latest().last_txn)
    states = list(zip(*(states_of(warehouse, view, span) for view in views), strict=True))
    pins = pins_of(views, relations)
    return judged(views, states, books.histories(relations), pins, block=block)


def judged(
    definitions: Sequence[ViewDefinition],
    states: Sequence[tuple[Bag, ...]],
    histories: SourceHistories,
    pins: Pins,
    *,
    is_whole: bool = True,
    block: int = 1,
) -> Verdict:
    """The level of some states, the first of which shows the beginning of the histories.

    ``is_whole``: all of the histories must have been shown; else as far as the last state is.
    """
    try:
        claims = claimed_cuts([view.name for view in definitions], states, histories, pins)
    except NoMoment as error:
        return Verdict(Level.NONE, False, Violation(Level.WEAK, error.state, str(error)))
    seen = histories if is_whole else history_until(histories, claims[-1])
    return check(definitions, seen, states, claims, block)


# -- copies -------------------------------------------------------------------------------------------


def copy_name(relation: RelationName) -> str:
    return f"{relation.relation}_now"


def copy_text(relation: RelationName, columns: Iterable[str]) -> str:
    return f"SELECT {', '.join(columns)} FROM {relation.source}.{relation.relation}"


def pins_of(views: Iterable[ViewDefinition], relations: Iterable[RelationName]) -> Pins:
    """The copies among some views, one for each relation that they read."""
    known = {view.name for view in views}
    pins: dict[str, list[tuple[str, RelationName]]] = {}
    for name in relations:
        assert copy_name(name) in known, f"no view beside the others is a copy of {name}"
        pins.setdefault(name.source, []).append((copy_name(name), name))
    return pins


def claimed_cuts(
    views: Sequence[str],
    states: Sequence[tuple[Bag, ...]],
    histories: SourceHistories,
    pins: Pins,
) -> list[Cut]:
    """For each state the cut that its copies stand at, never before that of the state before."""
    used = {source: copies for source, copies in pins.items() if source in histories.lengths}
    places = {source: _places(histories, [n for _, n in copies]) for source, copies in used.items()}
    claims: list[Cut] = []
    so_far = dict.fromkeys(used, 0)
    for index, state in enumerate(states):
        for source, copies in used.items():
            shown = tuple(state[views.index(view)] for view, _ in copies)
            known = places[source].get(shown, ())
            later = [number for number in known if number >= so_far[source]]
            if not later:
                reason = "only earlier in its history" if known else "never"
                nearest = _nearest(shown, places[source], so_far[source])
                raise NoMoment(index, f"state {index} shows {source} as it was {reason}: {nearest}")
            so_far[source] = later[0]
        claims.append(Cut.of(so_far))
    return claims


def _places(
    histories: SourceHistories, names: Sequence[RelationName]
) -> dict[tuple[Bag, ...], list[int]]:
    """When each content of some relations of a source was the present."""
    found: dict[tuple[Bag, ...], list[int]] = {}
    length = histories.lengths[names[0].source]
    for number in range(length + 1):
        contents = tuple(histories.contents(name, number) for name in names)
        found.setdefault(contents, []).append(number)
    return found


def _nearest(shown: tuple[Bag, ...], places: dict[tuple[Bag, ...], list[int]], at: int) -> str:
    def distance(contents: tuple[Bag, ...]) -> int:
        return sum(len(a - b) for a, b in zip(shown, contents, strict=True))

    best = min(places, key=distance)
    rows = [row for a, b in zip(shown, best, strict=True) for row in (a - b).sorted()]
    return f"before it stood at {at}; nearest are {places[best]}, different by {rows[:6]}"


def history_until(histories: SourceHistories, end: Cut) -> SourceHistories:
    """The histories up to a cut: what a run that was cut off could have seen."""
    ends = dict(end)
    return SourceHistories(
        histories.initial, {s: ts[: ends[s]] for s, ts in histories.transactions.items()}
    )


# -- reading ------------------------------------------------------------------------------------------


def states_of(warehouse: Warehouse, meant: ViewDefinition, span: Span) -> list[Bag]:
    """Every state of a view, by its change feed where one reaches so far."""
    view, schema = meant.name, meant.schema
    inside = [
        entry.views[view].incarnation
        for entry in warehouse.history()
        if entry.last_txn >= span.first and entry.first_txn <= span.last + 1 and view in entry.views
    ]
    if len(set(inside)) > 1:
        return [
            bag_of(warehouse.read_arrow(view, txn, with_count=True), schema)
            for txn in range(span.first, span.last + 1)
        ]
    state = bag_of(warehouse.read_arrow(view, span.first, with_count=True), schema)
    by_txn: dict[int, list[Any]] = {}
    for row in warehouse.changes_arrow(view, span.first, span.last).to_pylist():
        values = tuple(row[name] for name in schema.names)
        by_txn.setdefault(row["_txn"], []).append((values, row["_count"]))
    states = [state]
    for txn in range(span.first + 1, span.last + 1):
        if txn in by_txn:
            state = state + Bag.signed(schema, by_txn[txn])
        states.append(state)
    return states


def bag_of(table: Any, schema: Schema) -> Bag:
    return Bag.signed(
        schema,
        [(tuple(r[name] for name in schema.names), r["_count"]) for r in table.to_pylist()],
    )
