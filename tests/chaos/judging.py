"""The judge: every state that the warehouse showed, against what the witness saw the sources commit.

Knows no fault and no protocol. The level is decided by `viewkeeper.consistency.check`; what is done here
is to find the cut that each state claims to be. Copies of single relations say it: where they stand in
their source's history, all views of the same state must stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from chaos.scenery import BULKY, MAIN, MONEY, PINS, PROFILES, SCHEMAS, SINGLE, VIEWS
from chaos.witness import Witness
from viewkeeper.algebra import Bag
from viewkeeper.consistency import SourceHistories, check
from viewkeeper.merging.groups import partition
from viewkeeper.timeline import Cut
from viewkeeper.views import Level, RelationName, ViewDefinition
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.parsing.parser import parse_view
from viewkeeper.warehouse import Warehouse


@dataclass
class Judgement:
    """What was looked at, and what was wrong with it."""

    states: int = 0
    violations: list[str] = field(default_factory=list)


@cache
def definition(view: str) -> ViewDefinition:
    """The view over the relations as they were in the beginning; renames do not change its rows."""
    catalog = Catalog(tuple(CatalogRelation(name, schema) for name, schema in SCHEMAS.items()))
    return parse_view(view, VIEWS[view], catalog)


class Span(NamedTuple):
    """The states that are looked at."""

    first: int
    last: int


def judge(
    warehouse: Warehouse,
    witness: Witness,
    first_txn: int,
    level: Level = Level.COMPLETE,
    *,
    without: str | None = None,
) -> Judgement:
    """Every state from ``first_txn`` on; all that was committed must be in the last one.

    ``without``: a source that can't go on. The views over it have stopped, wherever they were, and
    the others need not wait for them; nothing needs to be complete.
    """
    is_whole = without is None
    found = Judgement()
    # Once: a run may go on meanwhile.
    span = Span(first_txn, warehouse.latest().last_txn)
    found.states = span.last - span.first + 1
    for verdict in (
        _main(warehouse, witness, _together(warehouse, span), level, is_whole, MAIN),
        *(
            _main(warehouse, witness, span, level, False, views)
            for views in (() if without is None else _apart(without))
        ),
        *(
            _single(warehouse, witness, view, source, span, level, is_whole)
            for view, (source, _) in SINGLE.items()
        ),
        *(_bulky(warehouse, witness, view, span, is_whole) for view in BULKY),
        _people(warehouse, witness, span, is_whole),
    ):
        if verdict:
            found.violations.append(verdict)
    return found


def has_converged(warehouse: Warehouse, witness: Witness) -> bool:
    """Whether the newest state has all that the witness saw."""
    snapshot = warehouse.snapshot()
    now = witness.now
    for view in ("orders_now", "notes_now", "customers_now", "regions_now"):
        (name,) = definition(view).relations
        rows = _rows(snapshot.read_arrow(view, with_count=True), SCHEMAS[name].names)
        if rows != _counted(now[name]):
            return False
    for view in SINGLE:
        (name,) = definition(view).relations
        if view != "bank":
            rows = _rows(snapshot.read_arrow(view, with_count=True), SCHEMAS[name].names)
            if _canonical(rows, name) != now[name]:
                return False
    for view in BULKY:
        if _bulk_rows(snapshot.read_arrow(view, with_count=True)) != witness.bulk_states[view][-1]:
            return False
    people = snapshot.read_arrow("people", with_count=True)
    names = _shown(people)
    if _rows(people, names) != _projected(now[PROFILES], names):
        return False
    # The bank has no copy: its position says whether it is there.
    return _bank(snapshot.read_arrow("bank", with_count=True)) == _bank_of(now)


# -- the main group -----------------------------------------------------------------------------------


def _main(
    warehouse: Warehouse,
    witness: Witness,
    span: Span,
    level: Level,
    is_whole: bool,
    names: Iterable[str],
) -> str:
    views = list(names)
    definitions = [definition(view) for view in views]
    relations = tuple(dict.fromkeys(name for d in definitions for name in d.relations))
    histories = witness.histories(relations)
    per_view = [_states(warehouse, d, span) for d in definitions]
    states = list(zip(*per_view, strict=True))
    try:
        claims = _claims(views, states, histories)
    except LookupError as error:
        return f"{error} (states are counted from {span.first})"
    if is_whole and claims[-1] != histories.end:
        return f"the last state is at {claims[-1]}, the sources are at {histories.end}"
    seen = _until(histories, claims[-1])
    verdict = check(definitions, seen, states, claims)
    if not verdict.claims_hold or not verdict.meets(level):
        return f"the main group is {verdict.level}, not {level}: {verdict.violation}"
    return ""


def _together(warehouse: Warehouse, span: Span) -> Span:
    """The states before some views of the main group stopped and others went on."""
    last = span.last
    for entry in reversed(warehouse.history()):
        stands: dict[str, list[Any]] = {}
        for view in MAIN:
            for source, position in entry.views[view].positions.items():
                stands.setdefault(source, []).append(position)
        if all(position == all_[0] for all_ in stands.values() for position in all_):
            break
        last = min(last, entry.first_txn - 1)
    return Span(span.first, max(span.first, last))


def _apart(stopped: str) -> tuple[tuple[str, ...], ...]:
    """The groups that the main group's views form while those over one source stand still."""
    reads = {view: definition(view).relations for view in MAIN}
    going = {v: names for v, names in reads.items() if all(n.source != stopped for n in names)}
    return partition(going)


def _claims(
    views: Sequence[str], states: Sequence[tuple[Bag, ...]], histories: SourceHistories
) -> list[Cut]:
    """For each state the cut that its copies stand at, never before that of the state before."""
    used = {source: pins for source, pins in PINS.items() if source in histories.lengths}
    places = {source: _places(histories, [n for _, n in pins]) for source, pins in used.items()}
    claims: list[Cut] = []
    so_far = dict.fromkeys(used, 0)
    for index, state in enumerate(states):
        for source, pins in used.items():
            shown = tuple(state[views.index(view)] for view, _ in pins)
            known = places[source].get(shown, ())
            later = [number for number in known if number >= so_far[source]]
            if not later:
                reason = "only earlier in its history" if known else "never"
                raise LookupError(
                    f"state {index} shows {source} as it was {reason}: "
                    f"{_nearest(shown, places[source], so_far[source])}"
                )
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


def _until(histories: SourceHistories, end: Cut) -> SourceHistories:
    """The histories up to a cut: what a run that was cut off could have seen."""
    ends = dict(end)
    return SourceHistories(
        histories.initial, {s: ts[: ends[s]] for s, ts in histories.transactions.items()}
    )


# -- views over one source ----------------------------------------------------------------------------


def _single(
    warehouse: Warehouse,
    witness: Witness,
    view: str,
    source: str,
    span: Span,
    level: Level,
    is_whole: bool,
) -> str:
    meant = definition(view)
    histories = witness.histories(meant.relations)
    states = [(state,) for state in _states(warehouse, meant, span)]
    if view == "bank" and (wrong := _lost_money(states)):
        return wrong
    if not is_whole:
        last = states[-1][0]
        numbers = range(histories.lengths[source], -1, -1)
        (name,) = meant.relations
        if view != "bank":
            end = next((n for n in numbers if histories.contents(name, n) == last), None)
            if end is None:
                return f"the last state of {view} is that of no moment of {source}"
            histories = _until(histories, Cut.of({source: end}))
        else:
            return ""
    verdict = check([meant], histories, states)
    if not verdict.meets(level):
        return f"{view} is {verdict.level}, not {level}: {verdict.violation}"
    return ""


def _lost_money(states: Iterable[tuple[Bag, ...]]) -> str:
    for index, (state,) in enumerate(states):
        for (_, total, _), _ in state:
            if total != MONEY // 8 * 8:
                return f"state {index} of bank has {total} in all: a transfer in halves"
    return ""


def _bulky(warehouse: Warehouse, witness: Witness, view: str, span: Span, is_whole: bool) -> str:
    wanted = [a for a, b in pairwise([*witness.bulk_states[view], None]) if a != b]
    shown = []
    for txn in _changed_at(warehouse, view, span):
        state = _bulk_rows(warehouse.read_arrow(view, txn, with_count=True))
        if not shown or shown[-1] != state:
            shown.append(state)
    if shown != (wanted if is_whole else wanted[: len(shown)]):
        return f"{view} showed {len(shown)} states, and they are not the {len(wanted)} it should"
    return ""


def _people(warehouse: Warehouse, witness: Witness, span: Span, is_whole: bool) -> str:
    """Each version of the view has columns of its own; it is judged by those."""
    histories = witness.histories((PROFILES,))
    length = histories.lengths[PROFILES.source]
    at, names = 0, ()
    for txn in _changed_at(warehouse, "people", span):
        table = warehouse.read_arrow("people", txn, with_count=True)
        names = _shown(table)
        rows = _rows(table, names)
        while at <= length and _projected(histories.contents(PROFILES, at), names) != rows:
            at += 1
        if at > length:
            return f"people at {txn} ({', '.join(names)}) is at no moment of its source, in order"
    if is_whole and names:
        end = _projected(histories.contents(PROFILES, length), names)
        if end != _projected(histories.contents(PROFILES, at), names):
            return "the last state of people does not include every transaction"
    return ""


# -- reading ------------------------------------------------------------------------------------------


def _states(warehouse: Warehouse, meant: ViewDefinition, span: Span) -> list[Bag]:
    """Every state of a view, by its change feed where one reaches so far."""
    view, schema = meant.name, meant.schema
    inside = [
        entry.views[view].incarnation
        for entry in warehouse.history()
        if entry.last_txn >= span.first and entry.first_txn <= span.last + 1 and view in entry.views
    ]
    if len(set(inside)) > 1:
        return [
            _bag(warehouse.read_arrow(view, txn, with_count=True), schema)
            for txn in range(span.first, span.last + 1)
        ]
    state = _bag(warehouse.read_arrow(view, span.first, with_count=True), schema)
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


def _changed_at(warehouse: Warehouse, view: str, span: Span) -> list[int]:
    """The states in which a view may differ from the one before."""
    numbers = {span.first, span.last}
    for entry in warehouse.history():
        if entry.kind == "epoch" and view in entry.statistics and entry.last_txn >= span.first:
            last = min(entry.last_txn, span.last)
            numbers |= set(range(max(span.first, entry.first_txn), last + 1))
    return sorted(numbers)


def _bag(table: Any, schema: Any) -> Bag:
    return Bag.signed(
        schema,
        [(tuple(r[name] for name in schema.names), r["_count"]) for r in table.to_pylist()],
    )


def _shown(table: Any) -> tuple[str, ...]:
    return tuple(name for name in table.schema.names if name not in ("_count", "_txn"))


def _rows(table: Any, names: Sequence[str]) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for row in table.to_pylist():
        key = tuple(row[name] for name in names)
        found[key] = found.get(key, 0) + row["_count"]
    return {row: count for row, count in found.items() if count}


def _counted(bag: Bag) -> dict[tuple[Any, ...], int]:
    return dict(bag)


def _canonical(rows: dict[tuple[Any, ...], int], name: RelationName) -> Bag:
    return Bag.signed(SCHEMAS[name], list(rows.items()))


def _projected(bag: Bag, names: Sequence[str]) -> dict[tuple[Any, ...], int]:
    places = [bag.schema.position(name) for name in names]
    found: dict[tuple[Any, ...], int] = {}
    for row, count in bag:
        key = tuple(row[place] for place in places)
        found[key] = found.get(key, 0) + count
    return found


def _bulk_rows(table: Any) -> frozenset[tuple[int, ...]]:
    return frozenset((int(r["grp"]), int(r["n"]), int(r["s"])) for r in table.to_pylist())


def _bank(table: Any) -> list[tuple[int, ...]]:
    return [(int(r["n"]), int(r["total"]), int(r["least"])) for r in table.to_pylist()]


def _bank_of(now: dict[RelationName, Bag]) -> list[tuple[int, ...]]:
    (accounts,) = definition("bank").relations
    balances = [row[1] for row, _ in now[accounts]]
    return [(len(balances), sum(balances), min(balances))]
