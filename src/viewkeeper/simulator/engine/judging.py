"""Is every state that a world showed right? Decided from what the sources really did.

A state claims a cut. Each of its views must be its own definition evaluated over the sources at that cut, cuts must
never go back, and unless a view was filled, one state and the next differ by one transaction (or by the parts of one
global transaction) that concerns the views. At the end everything is shown. The independent checker decides once more,
by search, without any claim (`searching`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from viewkeeper.algebra import Bag
from viewkeeper.engine.view import View
from viewkeeper.simulator.engine.alterations import kinds_of
from viewkeeper.simulator.engine.generator import BLOCK_PATIENCE_SECONDS
from viewkeeper.simulator.engine.promises import broken_promises
from viewkeeper.simulator.engine.readers import common_cut, read_together
from viewkeeper.simulator.engine.searching import parts_of, searched
from viewkeeper.simulator.engine.selection import selects
from viewkeeper.simulator.engine.shapes import fitting
from viewkeeper.simulator.engine.updates import Write
from viewkeeper.simulator.engine.warehouse import Shown
from viewkeeper.simulator.engine.world import EngineWorld
from viewkeeper.sources.interface import SchemaChange, SourceTransaction
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
    # Of each group of views that could be decided without claims: the level it reached in the end, and the one it promised.
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
        **kinds_of(world.scenario.updates),
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
        yield from self._read_apart()
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
            rows = fitting(source, cut[name.source], name.relation, schema)
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
        if len(alone) + (alone != new) > shown.block:
            yield f"state {number} shows {sorted(new)} at once"

    def _broken_block(
        self, number: int, shown: Shown, before: Mapping[str, Shown]
    ) -> Iterator[str]:
        """Whether a state has fewer transactions more than a block has, though others were still to come.

        Where groups unite, where global transactions make blocks longer, and where a pause ends blocks nothing is counted.
        """
        world, block = self._world, shown.block
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

    def _read_apart(self) -> Iterator[str]:
        """Views of several groups that a reader got at different cuts. Where schemas change, names of relations do not
        say which entries of a log a view reads: not judged."""
        if self._world.scenario.changes_schemas:
            return
        for states in read_together(self._world.ledger.numbers):
            cut = common_cut(states, self._world.sources)
            self._world.counts["reads of several views"] += 1
            for state in states:
                if self._at(state.view.definition, cut) != state.rows:
                    yield f"{state.view.name} of number {state.number} is read, which is not at {cut}"
                    return

    def _search(self) -> Iterator[str]:
        """The independent checker, without claims."""
        for part in parts_of(self._world):
            found = searched(self._world, part)
            if found is not None:
                verdict, wanted = found
                views = ", ".join(part.definitions)
                if part.is_last:
                    self.levels[views] = verdict.level, wanted
                if not verdict.meets(wanted):
                    yield f"{views}: {verdict.level}, not {wanted}: {verdict.problem}"


def _is_convergent(view: View) -> bool:
    return view.definition.level is Level.CONVERGENT
