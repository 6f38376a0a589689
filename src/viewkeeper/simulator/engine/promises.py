"""What a run promises beside right states: views end for a reason, mean their tables, and move together.

All of it is decided from what the sources did and from the views' texts; nothing is asked of the engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import permutations, product
from typing import TYPE_CHECKING

from viewkeeper.algebra.expressions import columns_of
from viewkeeper.engine.view import View
from viewkeeper.merging.groups import partition
from viewkeeper.simulator.engine.selection import selects
from viewkeeper.simulator.engine.sources import SimulatedSource
from viewkeeper.simulator.engine.updates import Table
from viewkeeper.simulator.engine.warehouse import Shown
from viewkeeper.sources.interface import SchemaChange, SourceTransaction
from viewkeeper.views.definition import LOCAL, RelationName, Term
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned

if TYPE_CHECKING:
    from viewkeeper.simulator.engine.world import EngineWorld


def broken_promises(world: EngineWorld) -> Iterator[str]:
    """What is wrong with a run whose states may all be right."""
    yield from _ended_for_no_reason(world)
    yield from _other_tables(world)
    yield from _moved_apart(world)


# -- views that ended -------------------------------------------------------------------------------


def _ended_for_no_reason(world: EngineWorld) -> Iterator[str]:
    """A view may end when something that it needs is gone, and nothing can stand for it."""
    ledger = world.ledger
    for name, reason in ledger.ended.items():
        if name not in ledger.views or reason == "it was deleted":
            continue
        view = ledger.views[name]
        since = ledger.positions[name]
        needs = _needs(view)
        for relation, columns in needs.items():
            source = world.sources[relation.source]
            lost = _lost_at(source, since[relation.source]["n"], relation.relation, columns)
            if lost is not None and not _is_replaceable(world, relation, columns, lost):
                break
        else:
            yield f"{name} ended, and all that it needs is there or can be replaced: {reason}"


def _lost_at(
    source: SimulatedSource, start: int, relation: str, columns: Mapping[str, object]
) -> int | None:
    """The entry of the log, from one on, after which a relation does not have these columns any more.

    A view may have taken changes that its position is before, and then its relations are there only behind them.
    """
    numbers = range(start, source.end + 1)
    there = [_has(source.history[n].get(relation), columns) for n in numbers]
    since = there.index(True) if True in there else 0
    return next(
        (n for n, is_there in zip(numbers[since:], there[since:], strict=True) if not is_there),
        None,
    )


def _needs(view: View) -> dict[RelationName, dict[str, object]]:
    """The columns without which a view has no meaning, with a type where an expression rests on it.

    Outer joins are steps, which carry all columns along: those that no output needs in the end are not needed.
    """
    definition = pruned(view.definition)
    dispensable = view.preferences.dispensable.outputs
    found: dict[RelationName, dict[str, object]] = {}
    wanted = {*definition.schema.names} - dispensable
    of_steps: dict[RelationName, set[str]] = {}
    for terms, outputs in (
        (definition.terms, wanted),
        *(
            (step.terms, of_steps.setdefault(step.name, set()))
            for step in reversed(definition.steps)
        ),
    ):
        for term in terms:
            computed, shown = _columns_for(term, outputs)
            for o in term.occurrences:
                mine = found.setdefault(o.name, {})
                for column in o.schema:
                    if o.qualified(column.name) in computed:
                        mine[column.name] = column.type
                    elif o.qualified(column.name) in shown:
                        mine.setdefault(column.name, None)
                of_steps.setdefault(o.name, set()).update(mine)
    return {name: mine for name, mine in found.items() if name.source != LOCAL}


def _columns_for(term: Term, outputs: Collection[str]) -> tuple[set[str], set[str]]:
    """The columns that a term computes with, and those that it shows for some of its outputs."""
    computed = {c for predicate in term.predicates for c in columns_of(predicate)}
    shown = {c for o in term.outputs if o.name in outputs for c in columns_of(o.expression)}
    grouping = term.grouping
    if grouping is None:
        return computed, shown
    if grouping.copies is None:
        return {o.qualified(c) for o in term.occurrences for c in o.schema.names}, set()
    # Rows without a partner: a key that is not shown can go.
    return computed, {c for k in grouping.keys if k.name in shown for c in columns_of(k.expression)}


def _has(table: Table | None, columns: Mapping[str, object]) -> bool:
    if table is None:
        return False
    schema = table.rows.schema
    return all(
        name in schema and of in (None, schema.type_of(name)) for name, of in columns.items()
    )


def _is_replaceable(
    world: EngineWorld, relation: RelationName, columns: Mapping[str, object], lost: int
) -> bool:
    """Whether the knowledge file names something for it that has all of these columns, to the end.

    The file's names are those of the beginning: tables and columns that are renamed are still meant.
    """
    source = world.sources[relation.source]
    for entry in world.scenario.knowledge.get("replacements", ()):
        (of, first), (other, by) = (entry[word].split(".") for word in ("relation", "by"))
        attributes = entry["attributes"]
        name, now = _followed(source, first, attributes, lost - 1)
        if (
            of == relation.source
            and name == relation.relation
            and columns.keys() <= {*now.values()}
        ):
            wanted = {attributes[then] for then, column in now.items() if column in columns}
            called, there = _followed(world.sources[other], by, wanted, world.sources[other].end)
            # No view reads it, so that a run which begins behind its change knows it by its new name only.
            is_known = world.runs == 1 or (called == by and all(a == b for a, b in there.items()))
            if is_known and wanted <= there.keys():
                return True
    return False


def _followed(
    source: SimulatedSource, first: str, columns: Iterable[str], upto: int
) -> tuple[str | None, dict[str, str]]:
    """What a table and its columns are called after an entry of the log, by their first names: without the
    columns that were dropped or got another type, and without any where the table is gone."""
    name: str | None = first
    now = {column: column for column in columns}
    for item in (item for entry in source.log[:upto] for item in entry):
        if not isinstance(item, SchemaChange) or item.relation != name:
            continue
        if item.after is None:
            name = item.renamed_to
        elif item.before is not None:
            before, after = item.before.schema, item.after.schema
            renamed = {c: item.renamed_columns.get(c, c) for c in before.names}
            now = {
                then: renamed[column]
                for then, column in now.items()
                if renamed.get(column, "") in after
                and after.type_of(renamed[column]) == before.type_of(column)
            }
    return name, now if name is not None else {}


# -- which table a name means -------------------------------------------------------------------------


def _name_at(source: SimulatedSource, relation: str, number: int) -> str | None:
    """What a table is called after an entry of the log that had this name at first: views follow a table
    that is renamed, and stay with the name where another table takes it."""
    return _followed(source, relation, (), number)[0]


def _other_tables(world: EngineWorld) -> Iterator[str]:
    """Views that ended up over tables that their texts never meant."""
    for name, view in world.ledger.views.items():
        if name in world.ledger.ended or name in world.frozen:
            continue
        meant = {r for r in world.scenario.views[name].definition.relations if r.source != LOCAL}
        for entry in world.scenario.knowledge.get("replacements", ()):
            meant.add(RelationName(*entry["by"].split(".")))
        now = {
            RelationName(r.source, _name_at(source, r.relation, source.end) or "")
            for r in meant
            for source in (world.sources[r.source],)
        }
        for other in {r for r in view.definition.relations if r.source != LOCAL} - now:
            yield f"{name} reads {other} in the end, which its text did not mean"


# -- views that move together ------------------------------------------------------------------------


def _moved_apart(world: EngineWorld) -> Iterator[str]:
    """Views that share a relation, or that a transaction changed together, show one cut from then on."""
    last: dict[str, Shown] = {}
    together: set[tuple[str, str]] = set()
    for number, shown in enumerate(world.ledger.shown):
        views = {n: v for n, v in shown.views.items() if v.definition.level is not Level.CONVERGENT}
        # Views that are read again behind a schema change are so one after the other, while groups unite.
        left = last.keys() - views.keys() - world.ledger.ended.keys() if shown.is_step else set()
        for one, other in product(views, sorted(left)):
            read = views[one].definition.relations
            is_one = (one, other) in together or _shares(last[other].views[other], read)
            if is_one and any(_missed(world, other, last[other], shown.cut)):
                yield f"state {number} shows {one} ahead of {other}: {shown.cut}"
                return
        for some in _changed_together(world, views, shown.cut, last):
            # Views that others hold together already are not seen to be tied: when those end, they part.
            held = partition({n: v.definition.relations for n, v in views.items()}, together)
            together |= {
                (one, other)
                for one, other in permutations(sorted(some), 2)
                if _shares(views[one], views[other].definition.relations)
                or not any(one in group and other in group for group in held)
            }
        last |= dict.fromkeys(views, shown)


def _shares(view: View, relations: Iterable[RelationName]) -> bool:
    return not {*view.definition.relations}.isdisjoint(relations)


def _missed(
    world: EngineWorld, view: str, shown: Shown, cut: Mapping[str, float]
) -> Iterator[SourceTransaction]:
    """What a view does not show at a cut where others are already."""
    definition = shown.views[view].definition
    for source in set(definition.sources) & cut.keys():
        for item in _transactions(world, source, shown.cut[source], cut[source]):
            if selects(definition, item):
                yield item


def _changed_together(
    world: EngineWorld,
    views: Mapping[str, View],
    cut: Mapping[str, float],
    last: Mapping[str, Shown],
) -> Iterator[set[str]]:
    """Of the views of a state, those that one transaction has changed since their last states."""
    for source in {s for view in views.values() for s in view.definition.sources}:
        readers = [n for n, v in views.items() if source in v.definition.sources and n in last]
        if len(readers) < 2:
            continue
        since = max(last[name].cut.get(source, 0) for name in readers)
        for item in _transactions(world, source, since, cut[source]):
            changed = _changed_by(item)
            of = {n for n in readers if changed & set(views[n].definition.relations)}
            if len(of) > 1:
                yield of


def _transactions(
    world: EngineWorld, source: str, since: float, until: float
) -> Iterator[SourceTransaction]:
    for entry in world.sources[source].log[int(since) : int(until)]:
        yield from (item for item in entry if isinstance(item, SourceTransaction))


def _changed_by(transaction: SourceTransaction) -> set[RelationName]:
    changes = transaction.changes
    return {RelationName(transaction.source, c.relation) for c in changes if c[1] or c[2]}
