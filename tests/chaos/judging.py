"""The judge: every state that the warehouse showed, against what the witness saw the sources commit.

Knows no fault and no protocol. The main group is judged by its copies of relations (`witnessing.judging`);
views over one source by a search through its history; those that are too large to remember by what
their source computes itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from chaos.scenery import BULKY, MAIN, MONEY, PINS, PROFILES, SCHEMAS, SINGLE, VIEWS
from chaos.witness import Witness
from viewkeeper.algebra import Bag
from viewkeeper.consistency import check
from viewkeeper.merging.groups import partition
from viewkeeper.sql.parser import parse_view
from viewkeeper.timeline import CutVector
from viewkeeper.views import Level, RelationName, ViewDefinition
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.warehouse import Warehouse
from witnessing.judging import Span, history_until, judged, states_of


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
    states = list(zip(*(states_of(warehouse, d, span) for d in definitions), strict=True))
    verdict = judged(definitions, states, histories, PINS, is_whole=is_whole)
    if not verdict.meets(level):
        told = f"the main group is {verdict.level}, not {level}: {verdict.problem}"
        return f"{told} (states are counted from {span.first})"
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
    states = [(state,) for state in states_of(warehouse, meant, span)]
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
            histories = history_until(histories, CutVector.of({source: end}))
        else:
            return ""
    verdict = check([meant], histories, states)
    if not verdict.meets(level):
        return f"{view} is {verdict.level}, not {level}: {verdict.problem}"
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


def _changed_at(warehouse: Warehouse, view: str, span: Span) -> list[int]:
    """The states in which a view may differ from the one before."""
    numbers = {span.first, span.last}
    for entry in warehouse.history():
        if entry.kind == "epoch" and view in entry.statistics and entry.last_txn >= span.first:
            last = min(entry.last_txn, span.last)
            numbers |= set(range(max(span.first, entry.first_txn), last + 1))
    return sorted(numbers)


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
