"""A seeded world around one engine: carries its actions out in any possible order, kills it, begins again.

Everything that the live driver does with threads, databases, Spark and Delta is done here with bags and a choice:
which source commits, which feed delivers, which group's next action is carried out, which view manager is done,
how much time passes. What the ledger has survives a kill, and nothing else does.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.engine import messages as m
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.integrator import Arrival, numbers_of
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.router import NO_GROUP, Addressed, Beginning, Engine
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.transaction_ties import Units
from viewkeeper.engine.view import View
from viewkeeper.errors import SourceError, invariant
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.merging.global_transactions import GlobalTransactions, Overdue
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.engine.promptness import late
from viewkeeper.simulator.engine.sources import (
    Alter,
    SimulatedCut,
    SimulatedSource,
    Update,
    Write,
    compare,
    position,
)
from viewkeeper.simulator.engine.warehouse import SimulatedLedger
from viewkeeper.sources.interface import SourceTransaction
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import LOCAL, RelationName
from viewkeeper.views.level import Level
from viewkeeper.views.pruning import pruned

# What a run ends with and begins again after, as a live one does.
BEGIN_AGAIN = ("schema-changed-while-uniting", "schema-changed-in-unit")
STEPS_MAX = 4_000
# How much rarer a slow view's manager is done than another's.
SLOW_ODDS = 30
# In a calm world, how often nothing happens at the sources where something else can happen.
CALM_ODDS = 40


@dataclass(frozen=True)
class EngineScenario:
    """What the sources hold and do, the views, and how the world behaves."""

    initial: Mapping[str, Mapping[str, Bag]]
    scripts: Mapping[str, tuple[Update, ...]]
    views: Mapping[str, View]
    knowledge: Knowledge = Knowledge()  # noqa: RUF009  (immutable)
    kills: int = 0
    failures: int = 0
    audits: int = 0
    limits: Limits = Limits()  # noqa: RUF009  (immutable)
    # Views whose managers need long.
    slow: frozenset[str] = frozenset()
    # Whether the sources rarely do something before everything else that can happen has happened.
    is_calm: bool = False


@dataclass
class _Feed:
    relations: tuple[str, ...]
    at: int
    generation: int = 0


_Computation = tuple[m.StartJob, Mapping[str, SimulatedCut]]


@dataclass
class _Managers:
    """Of one group: the views, what they were told, and what they have to compute."""

    views: Mapping[str, View] = field(default_factory=dict)
    # What has arrived and is not forgotten, and the number of the last transaction that each view took up.
    told: dict[tuple[str, int], Arrival] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    # Jobs that a view's manager has to compute, with their cuts.
    todo: dict[str, deque[_Computation]] = field(default_factory=dict)


class Stuck(Exception):
    """Nothing can happen any more, and something is not shown."""


class EngineWorld:
    """One run of a scenario, with its kills. `run` returns when everything is shown."""

    def __init__(
        self,
        scenario: EngineScenario,
        seed: int,
        make: Callable[..., GroupMachine] = GroupMachine,
        watch: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.scenario = scenario
        self.random = random.Random(seed)
        self.sources = {n: SimulatedSource(n, c) for n, c in scenario.initial.items()}
        self.ledger = SimulatedLedger()
        self.audits: list[str] = []
        # Transactions that waited for a view which does not hold them back.
        self.late: list[str] = []
        self._left = {name: deque(script) for name, script in scenario.scripts.items()}
        self._make, self._watch = make, watch
        self._kills, self._failures = scenario.kills, scenario.failures
        self._audits_left = scenario.audits
        self.now = 0.0
        self.runs = 0
        self._begin()

    # -- a run -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A new process, from the ledger."""
        self.runs += 1
        self._queues: dict[int, deque[m.Action]] = {}
        self._managers: dict[int, _Managers] = {}
        self._cuts: dict[tuple[int, int], Mapping[str, SimulatedCut]] = {}
        self._ties: list[tuple[str, ...]] = []
        # When each view began its last job in this run.
        self.begun_at: dict[str, float] = {}
        self.groups_since: dict[int, float] = {}
        self._again = False
        ledger = self.ledger
        for name, view in self.scenario.views.items():
            if name not in ledger.extents and not self._fits(view):
                ledger.ended.setdefault(name, "its text does not fit its sources")
        views = {
            name: ledger.views.get(name, view)
            for name, view in self.scenario.views.items()
            if name not in ledger.ended
        }
        new = frozenset(name for name in views if name not in ledger.extents)
        standing = {name: dict(ledger.positions[name]) for name in views if name not in new}
        routed = {}
        for name, source in self.sources.items():
            known = [cut[name]["n"] for cut in standing.values() if name in cut]
            routed[name] = position(min(known) if known else source.start)
        evolution = self._evolution(views, new, routed)
        used = {n for view in new for n in views[view].definition.sources}
        resumed = {n for cut in standing.values() for n in cut}
        present = {n: position(self.sources[n].start) for n in sorted(used & resumed)}
        beginning = Beginning(
            views, new, standing, routed, present, tuple(ledger.ties), evolution, ledger.taken
        )
        units = Units(GlobalTransactions(5.0, Overdue.SHOW_PARTS), {})
        self.engine = Engine(beginning, compare, units, self.scenario.limits, self._make)
        actions = self.engine.begin(self.now)
        self._feeds = {
            s: _Feed(self.engine.relations_of(s), routed[s]["n"]) for s in sorted(self.sources)
        }
        self._on_their_way: dict[str, deque[Delivery]] = {s: deque() for s in self._feeds}
        self._take(actions)

    def _fits(self, view: View) -> bool:
        """Whether a view that was never shown can be begun with: its text is of when its user wrote it."""
        return all(
            o.name.relation in (now := self.sources[o.source].now)
            and all(name in now[o.name.relation].schema for name in o.schema.names)
            for term in view.definition.all_terms
            for o in term.occurrences
        )

    def _evolution(
        self, views: Mapping[str, View], new: frozenset[str], routed: Mapping[str, Any]
    ) -> Evolution:
        """What relations are known as: as the views know them, others as they are where feeds begin."""
        relations: dict[RelationName, CatalogRelation] = {}
        for name, source in self.sources.items():
            for relation, rows in source.history[routed[name]["n"]].items():
                known = RelationName(name, relation)
                relations[known] = CatalogRelation(known, rows.schema)
        for name, view in views.items():
            if name in new:
                continue
            for term in view.definition.all_terms:
                for o in term.occurrences:
                    if o.source != LOCAL:
                        relations[o.name] = CatalogRelation(o.name, o.schema, o.key)
        return Evolution(Catalog(tuple(relations.values())), self.scenario.knowledge)

    def _take(self, actions: Iterable[Addressed]) -> None:
        for group, action in actions:
            if group == NO_GROUP:
                self._carry_out(group, action)
            else:
                self._queues.setdefault(group, deque()).append(action)

    def _step(self, event: Any) -> None:
        self._take(self.engine.step(event, self.now))

    def run(self) -> None:
        """Until all that the sources did is shown; raises `Stuck`, or whatever the engine raised."""
        for _ in range(STEPS_MAX):
            moves = self._moves()
            if not moves:
                if self._is_over():
                    return
                if not self._pass_time() and not self._moves():
                    raise Stuck(self._described())
                continue
            if self._kills and self._is_filled and not self.random.randrange(60):
                self._kills -= 1
                self._watch("kill")
                self._begin()
                continue
            self.random.choice(moves)()
            if self._again:
                self._begin()
            if not self.random.randrange(10):
                self._pass_time()
        raise Stuck(f"not over after {STEPS_MAX} steps: {self._described()}")

    @property
    def _is_filled(self) -> bool:
        """Whether every view was shown once: one that was not must fit the schemas of when a run begins."""
        known = {*self.ledger.extents, *self.ledger.ended}
        return all(name in known for name in self.scenario.views)

    def _moves(self) -> list[Callable[[], None]]:
        moves = self._answers()
        if moves and self.scenario.is_calm and self.random.randrange(CALM_ODDS):
            return moves
        if not moves and self.scenario.is_calm:
            self.late += late(self)
        for name, left in self._left.items():
            source = self.sources[name]
            if left and (not isinstance(left[0], Alter) or source.may_alter()):
                moves.append(lambda name=name: self._commit(name))  # type: ignore[misc]
            for number in source.hidden:
                moves.append(lambda s=source, n=number: s.show(n))  # type: ignore[misc]
        if self._audits_left and not self.random.randrange(20) and self.engine.groups:
            moves.append(self._audit)
        return moves

    def _answers(self) -> list[Callable[[], None]]:
        """What can happen though the sources do nothing."""
        moves: list[Callable[[], None]] = []
        slow: list[Callable[[], None]] = []
        for name, source in self.sources.items():
            if self._feeds[name].at < source.end and not self.engine.is_full(name):
                moves += [lambda name=name: self._deliver(name)] * 2  # type: ignore[misc]
            if self._on_their_way[name]:
                moves.append(lambda name=name: self._arrive(name))  # type: ignore[misc]
        for group, queue in self._queues.items():
            if queue:
                moves += [lambda g=group: self._next_action(g)] * 3  # type: ignore[misc]
        for group, managers in self._managers.items():
            for view, todo in managers.todo.items():
                if todo:
                    is_slow = view in self.scenario.slow and self.random.randrange(SLOW_ODDS)
                    done = lambda g=group, v=view: self._manager_done(g, v)  # noqa: E731
                    (slow if is_slow else moves).append(done)
        return moves or slow

    def _commit(self, name: str) -> None:
        source, update = self.sources[name], self._left[name].popleft()
        is_hidden = isinstance(update, Write) and not self.random.randrange(3)
        source.commit(update, is_hidden=is_hidden)
        self._watch(f"{name} commits {source.end}: {update}")

    def _deliver(self, name: str) -> None:
        if self.engine.is_full(name):
            return
        feed, source = self._feeds[name], self.sources[name]
        items, feed.at = source.items(feed.at, self.random.randint(1, 4), feed.relations)
        delivery = Delivery(name, tuple(items), position(feed.at), "one", feed.generation)
        self._watch(f"{name} delivers up to {feed.at}: {len(items)} items")
        # It may be on its way for a while: the feed can be sent back before it arrives.
        self._on_their_way[name].append(delivery)
        if self.random.randrange(2):
            self._arrive(name)

    def _arrive(self, name: str) -> None:
        """All that is on its way, in order."""
        while self._on_their_way[name]:
            self._step(m.FeedDelivered(self._on_their_way[name].popleft()))

    def _next_action(self, group: int) -> None:
        action = self._queues[group].popleft()
        self._watch(f"group {group}: {type(action).__name__}")
        self._carry_out(group, action)

    def _manager_done(self, group: int, view: str) -> None:
        managers = self._managers[group]
        job, cuts = managers.todo[view].popleft()
        change = self._computed(managers, view, job, cuts)
        if view in job.concerned:
            self._step((group, m.ChangeComputed(job.job, view, {view: change})))

    def _audit(self) -> None:
        self._audits_left -= 1
        group = self.random.choice(self.engine.groups)
        self._step((group.number, m.ReadWanted(self._audits_left)))

    def _pass_time(self) -> bool:
        """Go on to when the engine wants to be woken; False where it does not. Feeds say where they are."""
        for name in self._feeds:
            self._deliver(name)
        at = self.engine.wake_at
        if at == math.inf:
            return False
        # Not at once: feeds say several times a second where they are.
        self.now = min(max(self.now + 0.001, at), self.now + 1.0)
        self._step(m.TimePassed())
        return True

    def _is_over(self) -> bool:
        """Whether everything is shown."""
        ends = {name: position(source.end) for name, source in self.sources.items()}
        return self.engine.has_applied(ends) and all(
            group.is_over or (group.is_idle and group.is_settled) for group in self.engine.listening
        )

    def _described(self) -> str:
        groups = [
            f"{g.number} {sorted(g.scope.views)} reached {g.reached} fed {g.intake.fed} "
            f"due {len(g.intake.due)} held {list(g.intake.held)} pending "
            f"{len(g.intake.integrator.pending)} jobs {list(g.jobs.by_row)} end {g.intake.end}"
            for g in self.engine.listening
        ]
        ends = {name: source.end for name, source in self.sources.items()}
        return f"sources at {ends}; groups: {'; '.join(groups)}"

    # -- actions -----------------------------------------------------------------------------------

    def _carry_out(self, group: int, action: m.Action) -> None:
        match action:
            case m.OpenCuts():
                self._open(group, action)
            case m.ReleaseCuts(ticket):
                del self._cuts[group, ticket]
            case m.StartManagers(views, _, _, arrivals):
                todo: dict[str, deque[_Computation]] = {view: deque() for view in views}
                self._managers[group] = _Managers(views, taken=dict.fromkeys(views, 0), todo=todo)
                self._tell(group, arrivals)
            case m.StopManagers():
                self._managers.pop(group, None)
            case m.TellManagers(arrivals):
                self._tell(group, arrivals)
            case m.StartJob():
                self._start_job(group, action)
            case m.Commit():
                self._commit_epoch(group, action)
            case m.Note(reached, positions, is_durable):
                if is_durable:
                    self._advance(positions)
                self._step((group, m.Noted(reached, is_durable)))
            case m.FillViews():
                self._fill(group, action)
            case m.ReadWhole():
                self._read(group, action)
            case m.CommitDefinitions():
                self._define(action)
            case m.FollowFeed(source, relations, at, _, generation):
                self._feeds[source] = _Feed(relations, at["n"], generation)
            case m.LookForDecision(plan):
                self._step((group, m.DecisionFound(plan.reported, "approve")))
            case m.TieViews(views):
                self._ties.append(tuple(sorted(views)))
            case m.ReportError(error, is_final):
                self._take_error(error, is_final=is_final)

    def _take_error(self, error: BaseException, *, is_final: bool) -> None:
        if not is_final:
            return
        if isinstance(error, SourceError) and error.code in BEGIN_AGAIN:
            self._again = True
            return
        raise error

    def _open(self, group: int, action: m.OpenCuts) -> None:
        if self._failures and not self.random.randrange(15):
            self._failures -= 1
            name = next(iter(action.relations))
            error = SourceError("away", "it is away", source=name, retryable=True)
            self._step((group, m.Failed(error)))
            return
        cuts = {name: self.sources[name].cut(r) for name, r in action.relations.items()}
        for name, cut in cuts.items():
            if cut.missing:
                what = f"{name} has no {cut.missing[0]}"
                error = SourceError(
                    "unknown-relation", what, source=name, retryable=False, hint="await its cause"
                )
                self._step((group, m.Failed(error)))
                return
        self._cuts[group, action.ticket] = cuts
        self._step((group, m.CutsOpened(action.ticket, cuts)))

    def _tell(self, group: int, arrivals: Iterable[Arrival]) -> None:
        told = self._managers[group].told
        for arrival in arrivals:
            told[arrival.transaction.source, arrival.transaction.number] = arrival

    # -- computing ---------------------------------------------------------------------------------

    def _start_job(self, group: int, job: m.StartJob) -> None:
        managers = self._managers[group]
        cuts = self._cuts[group, job.ticket]
        if not job.keeps:
            del self._cuts[group, job.ticket]
        self.begun_at |= dict.fromkeys(job.concerned, self.now)
        for name in job.told:
            # A manager takes transactions in the order of arrival, and leaves none out.
            numbers = [int(n) for n in numbers_of(job.batch)]
            first = managers.taken[name] + 1
            invariant(numbers == [*range(first, first + len(numbers))], f"{name} takes {numbers}")
            managers.taken[name] = numbers[-1]
            managers.todo[name].append((job, cuts))

    def _computed(
        self,
        managers: _Managers,
        name: str,
        job: m.StartJob,
        cuts: Mapping[str, SimulatedCut],
    ) -> dict[int, Bag]:
        """What a job changes in a view, with what is known of other transactions when it is computed."""
        view = managers.views[name]
        before = dict(job.settled)
        for arrival in job.batch:
            source, first = arrival.transaction.source, arrival.transaction.number
            before[source] = min(before[source], first - 1)
        contents = self._contents(managers, cuts, job.reflected, before)
        whole = WholeView(pruned(view.definition))
        shown = whole.evaluated(_of(contents, view))
        nothing = Bag(shown.schema)
        found: dict[int, Bag] = {}
        for arrival in job.batch:
            place = arrival.transaction.source, arrival.transaction.number
            if not {*view.definition.relations}.isdisjoint(arrival.transaction.relations):
                invariant(place in managers.told, f"{name} needs {place}, which is forgotten")
            _apply(contents, arrival, 1)
            after = whole.evaluated(_of(contents, view))
            if after != shown:
                found[arrival.number] = after + -shown
            shown = after
        if view.choice.level is not Level.COMPLETE:
            return {job.batch[-1].number: sum(found.values(), nothing)}
        return found

    def _contents(
        self,
        managers: _Managers,
        cuts: Mapping[str, SimulatedCut],
        reflected: Mapping[str, Reflected],
        before: Mapping[str, int],
    ) -> dict[RelationName, Bag]:
        """The relations as they are when all up to ``before`` is applied, from cuts that show more."""
        contents = {
            RelationName(source, relation): cut.contents[relation]
            for source, cut in cuts.items()
            for relation in cut.schemas
        }
        for (source, number), arrival in managers.told.items():
            if number > before.get(source, number) and reflected[source].includes(number):
                _apply(contents, arrival, -1)
        return contents

    def _fill(self, group: int, fill: m.FillViews) -> None:
        cuts = self._cuts.pop((group, fill.ticket))
        contents = self._whole(cuts, fill.reflected, fill.waiting)
        for name, view in fill.views.items():
            extent = WholeView(pruned(view.definition)).evaluated(_of(contents, view))
            self.ledger.extents[name] = extent
            self.ledger.views[name] = view
        self._define(fill.definitions)
        self._advance(fill.positions)
        self._committed_ties()
        self.ledger.show(fill.positions, _numbers(fill.positions), is_step=False)
        self._step((group, m.Filled(fill.views)))

    def _define(self, action: m.CommitDefinitions) -> None:
        ledger = self.ledger
        ledger.views |= {view.name: view for view in action.views}
        ledger.ended |= {view.name: effect.reason for view, effect, _ in action.ended}
        ledger.taken |= dict.fromkeys(action.told, action.taken)

    def _whole(
        self,
        cuts: Mapping[str, SimulatedCut],
        reflected: Mapping[str, Reflected],
        waiting: Iterable[Arrival],
    ) -> dict[RelationName, Bag]:
        contents = {
            RelationName(source, relation): cut.contents[relation]
            for source, cut in cuts.items()
            for relation in cut.schemas
        }
        for arrival in waiting:
            known = reflected.get(arrival.transaction.source)
            if known is not None and known.includes(arrival.transaction.number):
                _apply(contents, arrival, -1)
        return contents

    def _read(self, group: int, read: m.ReadWhole) -> None:
        """An audit: what the group's views would be, computed from their sources alone."""
        cuts = self._cuts.pop((group, read.ticket))
        contents = self._whole(cuts, read.reflected, read.waiting)
        for name, view in self._managers[group].views.items():
            found = WholeView(pruned(view.definition)).evaluated(_of(contents, view))
            if name in self.ledger.extents and found != self.ledger.extents[name]:
                self.audits.append(f"{name} differs: {self.ledger.extents[name]} for {found}")
        self._step((group, m.ReadingDone()))

    # -- the ledger --------------------------------------------------------------------------------

    def _commit_epoch(self, group: int, commit: m.Commit) -> None:
        ledger = self.ledger
        numbers = [int(n) for n in numbers_of(commit.batch)]
        shown = {number for each in commit.contents for found in each.values() for number in found}
        invariant(shown <= {*numbers}, "a list has changes of what is not committed with it")
        cut = _numbers({v: ledger.positions[v] for v in commit.views})
        changes: dict[str, dict[int, Bag]] = {}
        for contents in commit.contents:
            for name, found in contents.items():
                mine = changes.setdefault(name, {})
                for number, change in found.items():
                    mine[number] = mine[number] + change if number in mine else change
        for state in range(max(commit.states) + 1):
            for place, number in enumerate(numbers):
                if commit.states[place] != state:
                    continue
                origin = commit.batch[place].origin
                cut[origin.source] = max(cut.get(origin.source, 0), origin.position["n"])
                for name, found in changes.items():
                    if number in found:
                        ledger.extents[name] = ledger.extents[name] + found[number]
            is_last = state == max(commit.states)
            claim = _numbers(commit.positions) if is_last else cut
            ledger.show(commit.views, claim)
        ledger.commits += 1
        self._advance(commit.positions)
        self._committed_ties()
        told = self._managers[group].told
        for key in [k for k, each in told.items() if each.number <= commit.forget_upto]:
            del told[key]
        self._step((group, m.Committed(commit.number)))

    def _advance(self, positions: m.ViewPositions) -> None:
        for view, cut in positions.items():
            known = self.ledger.positions.setdefault(view, {})
            for source, at in cut.items():
                invariant(
                    source not in known or at["n"] >= known[source]["n"],
                    f"{view} goes back at {source}",
                    detail=f"from {known} to {cut}",
                )
                known[source] = at

    def _committed_ties(self) -> None:
        self.ledger.ties += self._ties
        self._ties = []


def _apply(contents: dict[RelationName, Bag], arrival: Arrival, sign: int) -> None:
    origin = arrival.origin
    if not isinstance(origin, SourceTransaction):
        return
    for relation, deleted, inserted in origin.changes:
        name = RelationName(origin.source, relation)
        if name in contents:
            rows = [*((row, -sign) for row in deleted), *((row, sign) for row in inserted)]
            contents[name] = contents[name] + Bag(contents[name].schema, rows)


def _of(contents: Mapping[RelationName, Bag], view: View) -> Callable[[RelationName], Bag]:
    narrow = pruned(view.definition)
    columns = {o.name: o.schema.names for t in narrow.all_terms for o in t.occurrences}
    return lambda name: contents[name].only(columns[name])


def _numbers(positions: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """The cut of several views: of each source, the furthest position of any of them."""
    found: dict[str, int] = {}
    for cut in positions.values():
        for source, at in cut.items():
            found[source] = max(at["n"], found.get(source, 0))
    return found
