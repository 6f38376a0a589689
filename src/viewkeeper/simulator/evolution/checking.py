"""Is a history of an evolving view strongly consistent? Judged by `consistency.check`, epoch by epoch.

An *epoch* is the time for which a version of the view is shown. Inside it the definition is fixed and the
ordinary checker decides, over the sources as that version names them. Across epochs it must hold that

- cuts never go back, and versions neither;
- a version appears only at cuts that include the schema change it was made for, and every relation and
  column that it reads is there at its cuts: the definition is the one that belongs to the cut;
- at the end every update is included, unless the view was retired;
- every update came in with exactly one state, or is named by the retirement as reflected nowhere.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from viewkeeper.consistency import SourceHistories, check
from viewkeeper.evolution.changes import SchemaChanged, Update
from viewkeeper.simulator.evolution.source import Contents
from viewkeeper.simulator.evolution.world import EvolutionWorld, Record
from viewkeeper.timeline import Cut, Transaction
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned


@dataclass(frozen=True)
class EvolutionVerdict:
    """What is wrong with a run; nothing when it is strongly consistent."""

    problems: tuple[str, ...]
    # How many of the updates changed the view: data, or what it is.
    changing: int = 0

    @property
    def is_strong(self) -> bool:
        return not self.problems


def judged(world: EvolutionWorld, *, search: bool = False) -> EvolutionVerdict:
    """The verdict on a run that is over; ``search`` ignores the cuts that were claimed."""
    return EvolutionVerdict(tuple(_problems(world, search)), _changing(world))


def _changing(world: EvolutionWorld) -> int:
    """By the states that were shown: those of a run without problems are right."""
    return sum(
        (one.version.number, one.extent) != (other.version.number, other.extent)
        for one, other in itertools.pairwise(world.records)
    )


def _problems(world: EvolutionWorld, search: bool) -> Iterator[str]:
    for earlier, later in itertools.pairwise(world.records):
        if not later.cut.includes(earlier.cut) or later.version.number < earlier.version.number:
            yield f"{later.cut} (version {later.version.number}) after {earlier.cut}"
    yield from _misplaced(world.records)
    yield from _unaccounted(world)
    epochs = [list(g) for _, g in itertools.groupby(world.records, lambda r: r.version.number)]
    for records in epochs:
        yield from _epoch_problems(world, records, search, is_last=records is epochs[-1])
    if world.retired is None and world.records[-1].cut != world.scenario.end:
        yield f"it ended at {world.records[-1].cut}, not at {world.scenario.end}"


def _misplaced(records: list[Record]) -> Iterator[str]:
    for record in records:
        change = record.version.change
        if change is not None and change.number > record.cut[change.source]:
            yield f"version {record.version.number} is shown at {record.cut}, before {change}"


def _unaccounted(world: EvolutionWorld) -> Iterator[str]:
    seen: Counter[tuple[str, int]] = Counter()
    nowhere: tuple[Update, ...] = () if world.retired is None else world.retired.unreflected
    for update in itertools.chain(nowhere, *world.included):
        seen[update.source, update.number] += 1
    for source, script in world.scenario.scripts.items():
        for update in script:
            count = seen[source, update.number]
            late = world.retired is not None and count == 0
            if count != 1 and not late:
                yield f"{update} came in {count} times"


# -- one epoch --------------------------------------------------------------------------------------


def _epoch_problems(
    world: EvolutionWorld, records: list[Record], search: bool, *, is_last: bool
) -> Iterator[str]:
    start = records[0].cut
    definition = pruned(records[0].version.definition)
    at_start = {s: contents[start[s]] for s, contents in world.scenario.histories.items()}
    missing = [n for n in definition.relations if not _has(at_start[n.source], n, definition)]
    if missing:
        yield f"version {records[0].version.number} reads {missing[0]}, not there at {start}"
        return
    histories = _histories(world, definition, start)
    claims = [_shifted(record.cut, start) for record in records]
    beyond = [r.cut for r, c in zip(records, claims, strict=True) if not histories.end.includes(c)]
    if beyond:
        yield f"version {records[0].version.number} is shown at {beyond[0]}, where it means nothing"
        return
    states = [(record.extent.to_bag(),) for record in records]
    verdict = check([definition], histories, states, None if search else claims)
    converges = is_last and world.retired is None
    if not verdict.meets(Level.STRONG if converges else Level.CONSISTENT):
        yield f"version {records[0].version.number} from {start} on: {verdict.problem}"


def _histories(world: EvolutionWorld, definition: ViewDefinition, start: Cut) -> SourceHistories:
    """What the sources went through from the cut on, as far as the definition means something."""
    contents = world.scenario.histories
    schemas = {o.name: o.schema for term in definition.terms for o in term.occurrences}
    initial = {n: contents[n.source][start[n.source]][n].only(s.names) for n, s in schemas.items()}
    scripts: dict[str, list[Transaction]] = {}
    for source, number in start:
        transactions = scripts[source] = []
        names = [name for name in schemas if name.source == source]
        for update in world.scenario.scripts[source][number:]:
            after = contents[source][update.number]
            if isinstance(update, SchemaChanged) and not all(
                _same(contents[source][update.number - 1], after, n, definition) for n in names
            ):
                break
            changes = tuple(
                (name, rows.only(schemas[name].names))
                for name, rows in (() if isinstance(update, SchemaChanged) else update.changes)
                if name in schemas
            )
            transactions.append(Transaction(source, len(transactions) + 1, changes))
    return SourceHistories(initial, scripts)


def _has(contents: Contents, name: RelationName, definition: ViewDefinition) -> bool:
    """Whether the relation is there with all columns that the definition reads, in their types."""
    rows = contents.get(name)
    return rows is not None and all(
        f.name in rows.schema and rows.schema.type_of(f.name) == f.type
        for term in definition.terms
        for o in term.occurrences
        if o.name == name
        for f in o.schema
    )


def _same(
    before: Contents, after: Contents, name: RelationName, definition: ViewDefinition
) -> bool:
    """Whether a schema change left alone what the definition reads of the relation."""
    if not _has(after, name, definition):
        return False
    schema = next(o.schema for t in definition.terms for o in t.occurrences if o.name == name)
    return before[name].only(schema.names) == after[name].only(schema.names)


def _shifted(cut: Cut, start: Cut) -> Cut:
    return Cut.of({source: number - start[source] for source, number in cut})
