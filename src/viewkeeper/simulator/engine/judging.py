"""Is every state that a world showed right? Decided from what the sources really did.

A state claims a cut. Each of its views must be its own definition evaluated over the sources at that cut, cuts must
never go back, and unless a view was filled, one state and the next differ by one transaction (or by the parts of one
global transaction) that concerns the views. At the end everything is shown. Where schemas never change, the
independent checker decides once more, by search, without any claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.algebra import Bag
from viewkeeper.algebra.types import Schema
from viewkeeper.consistency import SourceHistories, check
from viewkeeper.consistency.checker import Undecided
from viewkeeper.engine.view import View
from viewkeeper.protocols.choice import block_size
from viewkeeper.simulator.engine.generator import BLOCK_PATIENCE_SECONDS
from viewkeeper.simulator.engine.promises import broken_promises
from viewkeeper.simulator.engine.selection import selects
from viewkeeper.simulator.engine.sources import SimulatedSource
from viewkeeper.simulator.engine.updates import Tables, Write, reshaped
from viewkeeper.simulator.engine.warehouse import Shown
from viewkeeper.simulator.engine.world import EngineWorld
from viewkeeper.sources.interface import SchemaChange, SourceTransaction
from viewkeeper.timeline import Transaction
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned


@dataclass(frozen=True)
class EngineVerdict:
    """What is wrong with a run, and how much it showed."""

    problems: tuple[str, ...]
    states: int
    # How many states differ from the one before.
    changing: int
    # What the run was made of: transactions, schema changes that were taken, unions, kills and others.
    counts: Mapping[str, int] = field(default_factory=dict)
    # Of each view that could be decided without claims: the level that it reached, and the one it promised.
    levels: Mapping[str, tuple[Level, Level]] = field(default_factory=dict)


def judged(world: EngineWorld) -> EngineVerdict:
    """The verdict on a run that is over."""
    judge = _Judge(world)
    problems = [*world.audits, *world.late, *judge.problems(), *broken_promises(world)]
    items = [item for source in world.sources.values() for entry in source.log for item in entry]
    counts = {
        "transactions": sum(isinstance(item, SourceTransaction) for item in items),
        "changes of schemas": sum(isinstance(item, SchemaChange) for item in items),
        "frozen": len(world.frozen),
        "ended": len(world.ledger.ended),
        **world.counts,
    }
    states = len(world.ledger.shown)
    return EngineVerdict(tuple(problems), states, judge.changing, counts, judge.levels)


class _Judge:
    def __init__(self, world: EngineWorld) -> None:
        self._world = world
        self._known: dict[tuple[ViewDefinition, tuple[tuple[str, float], ...]], Bag | str] = {}
        self.changing = 0
        self.levels: dict[str, tuple[Level, Level]] = {}

    def problems(self) -> Iterator[str]:
        yield from self._wrong_states()
        yield from self._wrong_order()
        yield from self._wrong_end()
        yield from self._search()

    def _wrong_states(self) -> Iterator[str]:
        for number, shown in enumerate(self._world.ledger.shown):
            for name, rows in shown.rows.items():
                if _is_convergent(shown.views[name]):
                    continue  # it promises no more than to be right in the end
                expected = self._at(shown.views[name].definition, shown.cut)
                if isinstance(expected, str):
                    yield f"state {number} of {name} at {shown.cut}: {expected}"
                elif expected != rows:
                    yield f"state {number} of {name} at {shown.cut} is {rows}, not {expected}"

    def _at(self, definition: ViewDefinition, cut: Mapping[str, float]) -> Bag | str:
        narrow = pruned(definition)
        numbers = tuple(sorted((s, cut[s]) for s in narrow.sources))
        key = (narrow, numbers)
        if key not in self._known:
            self._known[key] = self._evaluated(narrow, dict(numbers))
        return self._known[key]

    def _evaluated(self, definition: ViewDefinition, cut: Mapping[str, float]) -> Bag | str:
        schemas = {o.name: o.schema for t in definition.all_terms for o in t.occurrences}
        found: dict[RelationName, Bag] = {}
        for name, schema in schemas.items():
            source = self._world.sources.get(name.source)
            if source is None:
                continue
            rows = _fitting(source, cut[name.source], name.relation, schema)
            if rows is None:
                return f"{name} is not there with {schema}"
            found[name] = rows.only(schema.names)
        evaluated: Bag = WholeView(definition).evaluated(lambda name: found[name])
        return evaluated

    def _wrong_order(self) -> Iterator[str]:
        last: dict[str, Shown] = {}
        for number, shown in enumerate(self._world.ledger.shown):
            before = {n: last[n] for n in shown.rows if n in last}
            if any(before[n].rows[n] != rows for n, rows in shown.rows.items() if n in before):
                self.changing += 1
            for name, earlier in before.items():
                sources = shown.views[name].definition.sources
                for source in sources:
                    if shown.cut[source] < earlier.cut.get(source, 0):
                        yield f"state {number} of {name} goes back at {source}"
            if before and shown.is_step and self._is_complete(shown):
                yield from self._skipped(number, shown, before)
                yield from self._broken_block(number, shown, before)
            last |= dict.fromkeys(shown.rows, shown)

    @staticmethod
    def _is_complete(shown: Shown) -> bool:
        return all(view.choice.level is Level.COMPLETE for view in shown.views.values())

    def _skipped(self, number: int, shown: Shown, before: Mapping[str, Shown]) -> Iterator[str]:
        """Whether several transactions that concern the views came in with one state."""
        new: set[tuple[str, int]] = set()
        for name, earlier in before.items():
            definition = shown.views[name].definition
            for source in definition.sources:
                log = self._world.sources[source].log
                entries = log[int(earlier.cut.get(source, 0)) : int(shown.cut[source])]
                for item in (item for entry in entries for item in entry):
                    if isinstance(item, SourceTransaction) and selects(definition, item):
                        new.add((source, int(item.identity)))
        alone = {each for each in new if not self._is_between_ties(*each)}
        if len(alone) + (alone != new) > block_of(shown):
            yield f"state {number} shows {sorted(new)} at once"

    def _broken_block(
        self, number: int, shown: Shown, before: Mapping[str, Shown]
    ) -> Iterator[str]:
        """Whether a state has fewer transactions more than a block has, though others were still to come.

        Where groups unite, where global transactions make blocks longer, and where a pause ends blocks nothing is counted.
        """
        world, block = self._world, block_of(shown)
        scripts = world.scenario.scripts.values()
        is_tied = any(update.tie for s in scripts for update in s if isinstance(update, Write))
        patience = world.scenario.limits.block_seconds
        is_ended = patience < BLOCK_PATIENCE_SECONDS or shown.quiet_seconds >= patience
        if block == 1 or is_ended or is_tied or world.counts["unions"]:
            return
        relations = {name for view in shown.views.values() for name in view.definition.relations}
        cuts = {s: max(e.cut.get(s, 0) for e in before.values()) for s in shown.cut}
        found = sum(
            any(RelationName(source, c.relation) in relations for c in item.changes)
            for source, since in cuts.items()
            for entry in world.sources[source].log[int(since) : int(shown.cut[source])]
            for item in entry
            if isinstance(item, SourceTransaction)
        )
        if found != block:
            yield f"state {number} shows {found} transactions, and not a block of {block}"

    def _is_between_ties(self, source: str, number: int) -> bool:
        """Whether it may be of one unit with others: global transactions that feeds deliver in different orders
        are one, with all that lies between their parts. Views need not read the parts themselves."""
        log = self._world.sources[source].log
        ties = [n for n, entry in enumerate(log, 1) if any(getattr(i, "tie", None) for i in entry)]
        return bool(ties) and ties[0] <= number <= ties[-1]

    def _wrong_end(self) -> Iterator[str]:
        world = self._world
        ends = {name: source.end for name, source in world.sources.items()}
        for name, view in world.ledger.views.items():
            if name in world.ledger.ended or name in world.frozen:
                continue
            expected = self._at(view.definition, ends)
            if isinstance(expected, str) or expected != world.ledger.extents[name]:
                yield f"{name} ends as {world.ledger.extents[name]}, not as {expected}"

    def _search(self) -> Iterator[str]:
        """The independent checker, without claims, of each view alone where no schema changes."""
        world = self._world
        scripts = world.scenario.scripts.values()
        if not all(isinstance(update, Write) for script in scripts for update in script):
            return
        for name, view in world.ledger.views.items():
            shown = [each for each in world.ledger.shown if name in each.rows]
            if not shown or name in world.ledger.ended:
                continue
            definition = pruned(view.definition)
            histories = _histories(world, definition, shown[0].cut)
            states = [(each.rows[name],) for each in shown]
            try:
                verdict = check([definition], histories, states, block=max(map(block_of, shown)))
            except Undecided:
                continue
            fills = sum(not each.is_step for each in shown)
            # Views that move together show what the weakest of them shows.
            is_complete = fills == 1 and all(map(self._is_complete, shown))
            wanted = Level.COMPLETE if is_complete else Level.STRONG
            if any(update.tie for s in scripts for update in s if isinstance(update, Write)):
                wanted = min(wanted, Level.STRONG)
            if _is_convergent(view):
                wanted = Level.CONVERGENT
            self.levels[name] = verdict.level, wanted
            if not verdict.meets(wanted):
                yield f"{name} is {verdict.level}, not {wanted}: {verdict.problem}"


def _histories(
    world: EngineWorld, definition: ViewDefinition, start: Mapping[str, float]
) -> SourceHistories:
    schemas = {
        o.name: o.schema
        for t in definition.all_terms
        for o in t.occurrences
        if o.source in world.sources
    }
    initial = {
        n: world.sources[n.source].at(start[n.source])[n.relation].rows.only(s.names)
        for n, s in schemas.items()
    }
    scripts: dict[str, list[Transaction]] = {}
    for source in definition.sources:
        known = world.sources[source]
        found = scripts[source] = []
        for number in range(int(start[source]) + 1, known.end + 1):
            before, after = known.history[number - 1], known.history[number]
            changes = tuple(
                (n, after[n.relation].rows.only(s.names) + -before[n.relation].rows.only(s.names))
                for n, s in schemas.items()
                if n.source == source
            )
            found.append(Transaction(source, len(found) + 1, changes))
    return SourceHistories(initial, scripts)


def block_of(shown: Shown) -> int:
    """How many transactions lie between two states of views that move together, by their texts."""
    return math.lcm(*(block_size(view.definition) for view in shown.views.values()))


def _is_convergent(view: View) -> bool:
    return view.definition.level is Level.CONVERGENT


def _fitting(source: SimulatedSource, at: float, relation: str, schema: Schema) -> Bag | None:
    """A relation at a cut; where only a later schema has what is read, in the shape of that one."""
    tables = dict(source.at(at))
    changes = source.changes_behind(at)
    number = at
    while True:
        table = tables.get(relation)
        if table is not None and all(
            f.name in table.rows.schema and table.rows.schema.type_of(f.name) == f.type
            for f in schema
        ):
            return table.rows
        following = next(changes, None)
        if following is None:
            return None
        number, change = following
        tables = _reshaped(source, tables, number, change)


def _reshaped(
    source: SimulatedSource, tables: Tables, number: float, change: SchemaChange
) -> Tables:
    """Tables after a schema change alone, as if no transaction had come between."""
    after = dict(tables)
    table = after.pop(change.relation, None)
    if table is None:
        return after
    if change.renamed_to is not None:
        after[change.renamed_to] = table
    elif change.after is not None and change.rewrites:
        rewritten = source.at(number).get(change.relation)
        if rewritten is not None:  # else the same statement gave it another name
            after[change.relation] = rewritten
    elif change.after is not None:
        rows = reshaped(table.rows, change.after.schema, change.renamed_columns)
        after[change.relation] = replace(table, rows=rows)
    return after
