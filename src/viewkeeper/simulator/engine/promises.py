"""What a run promises beside right states: views end for a reason, mean their tables, and move together.

All of it is decided from what the sources did and from the views' texts; nothing is asked of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from viewkeeper.algebra.expressions import columns_of
from viewkeeper.engine.view import View
from viewkeeper.simulator.engine.sources import SimulatedSource
from viewkeeper.simulator.engine.updates import Table
from viewkeeper.sources.interface import SchemaChange, SourceTransaction
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level

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
            start = since[relation.source]["n"]
            lost = [
                number
                for number in range(start, source.end + 1)
                if not _has(source.history[number].get(relation.relation), columns)
            ]
            if lost and not _is_replaceable(world, relation, columns, lost[0]):
                break
        else:
            yield f"{name} ended, and all that it needs is there or can be replaced: {reason}"


def _needs(view: View) -> dict[RelationName, dict[str, object]]:
    """The columns without which a view has no meaning, with a type where an expression rests on it."""
    dispensable = view.preferences.dispensable.outputs
    found: dict[RelationName, dict[str, object]] = {}
    for term in view.definition.all_terms:
        computed = {c for predicate in term.predicates for c in columns_of(predicate)}
        shown: set[str] = set()
        names = view.definition.schema.names
        for output, name in zip(term.outputs, names, strict=True):
            wanted = columns_of(output.expression)
            shown |= set() if name in dispensable else wanted
            computed |= wanted if term.grouping is not None else set()
        for o in term.occurrences:
            mine = found.setdefault(o.name, {})
            for field in o.schema:
                if o.qualified(field.name) in computed:
                    mine[field.name] = field.type
                elif o.qualified(field.name) in shown:
                    mine.setdefault(field.name, None)
    return found


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
    """Whether the knowledge file named something for it, and that was as it had been written."""
    source = world.sources[relation.source]
    was = next((n for n in source.history[0] if _name_at(source, n, lost - 1) == relation.relation), "")
    for entry in world.scenario.knowledge.get("replacements", ()):
        by = entry["by"].partition(".")[2]
        is_meant = entry["relation"] == f"{relation.source}.{was}"
        if is_meant and columns.keys() <= entry["attributes"].keys():
            return not any(
                isinstance(item, SchemaChange) and item.relation in (by, relation.relation, was)
                for number in range(lost - 1)
                for item in source.log[number]
            )
    return False


# -- which table a name means -------------------------------------------------------------------------


def _name_at(source: SimulatedSource, relation: str, number: int) -> str | None:
    """What a table is called after an entry of the log that had this name at first: views follow a table
    that is renamed, and stay with the name where another table takes it."""
    name: str | None = relation
    for entry in source.log[:number]:
        for item in entry:
            if isinstance(item, SchemaChange) and item.relation == name and item.after is None:
                name = item.renamed_to
    return name


def _other_tables(world: EngineWorld) -> Iterator[str]:
    """Views that ended up over tables that their texts never meant."""
    for name, view in world.ledger.views.items():
        if name in world.ledger.ended or name in world.frozen:
            continue
        meant = set(world.scenario.views[name].definition.relations)
        for entry in world.scenario.knowledge.get("replacements", ()):
            meant.add(RelationName(*entry["by"].split(".")))
        now = {
            RelationName(r.source, _name_at(source, r.relation, source.end) or "")
            for r in meant
            for source in (world.sources[r.source],)
        }
        for other in set(view.definition.relations) - now:
            yield f"{name} reads {other} in the end, which its text did not mean"


# -- views that move together ------------------------------------------------------------------------


def _moved_apart(world: EngineWorld) -> Iterator[str]:
    """Views that share a relation, or that a transaction changed together, show one cut from then on."""
    last: dict[str, Mapping[str, float]] = {}
    together: set[frozenset[str]] = set()
    for number, shown in enumerate(world.ledger.shown):
        views = {n: v for n, v in shown.views.items() if v.definition.level is not Level.CONVERGENT}
        for each in together:
            there = [name for name in each if name not in world.ledger.ended]
            if 0 < len(views.keys() & set(there)) < len(there):
                yield f"state {number} shows {sorted(views)}, of {sorted(each)} only one"
                return
        for some in _changed_together(world, views, shown.cut, last):
            together |= {frozenset(pair) for pair in combinations(sorted(some), 2)}
        last |= dict.fromkeys(views, shown.cut)


def _changed_together(
    world: EngineWorld,
    views: Mapping[str, View],
    cut: Mapping[str, float],
    last: Mapping[str, Mapping[str, float]],
) -> Iterator[set[str]]:
    """Of the views of a state, those that one transaction has changed since their last states."""
    for source in {s for view in views.values() for s in view.definition.sources}:
        readers = [n for n, v in views.items() if source in v.definition.sources and n in last]
        if len(readers) < 2:
            continue
        since = max(last[name].get(source, 0) for name in readers)
        for entry in world.sources[source].log[int(since) : int(cut[source])]:
            for item in entry:
                if isinstance(item, SourceTransaction):
                    changed = {RelationName(source, c.relation) for c in item.changes}
                    of = {n for n in readers if changed & set(views[n].definition.relations)}
                    if len(of) > 1:
                        yield of

