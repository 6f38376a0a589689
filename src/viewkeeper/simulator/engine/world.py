"""A seeded world around one engine: carries its actions out in any possible order, kills it, begins again.

Everything that the live driver does with threads, databases, Spark and Delta is done here with bags and a choice:
which source commits, which feed delivers, which group's next action is carried out, which view manager is done,
how much time passes. What the ledger has survives a kill, and nothing else does.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.engine import messages as m
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.failures import BROKEN, OVERTAKEN
from viewkeeper.engine.integrator import numbers_of
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.router import NO_GROUP, Addressed, Engine
from viewkeeper.engine.schema_changes import Foreseen
from viewkeeper.engine.transaction_ties import Units
from viewkeeper.errors import SourceError, invariant
from viewkeeper.evolution.adaptation import adapted
from viewkeeper.merging.global_transactions import GlobalTransactions, Overdue
from viewkeeper.simulator.engine.beginnings import EngineScenario, starts_of
from viewkeeper.simulator.engine.computing import Contents
from viewkeeper.simulator.engine.managers import Managers
from viewkeeper.simulator.engine.people import People
from viewkeeper.simulator.engine.promptness import late
from viewkeeper.simulator.engine.readers import places_of
from viewkeeper.simulator.engine.refusals import away, lacks, lost, refused
from viewkeeper.simulator.engine.sources import (
    SimulatedCut,
    SimulatedSource,
    compare,
    number_of,
    position,
)
from viewkeeper.simulator.engine.standstill import described, is_frozen, is_over, not_shown
from viewkeeper.simulator.engine.updates import Alter, Write
from viewkeeper.simulator.engine.warehouse import SimulatedLedger, changes_of, cut_of

# What a run ends with and begins again after, as a live one does.
BEGIN_AGAIN = ("schema-changed-while-uniting", "schema-changed-in-unit")
STEPS_MAX = 4_000
# A step is a kill once in this number of steps, while there are kills left.
KILL_ODDS = 60
# How much rarer a slow view's manager is done than another's.
SLOW_ODDS = 30
# In a calm world, how often nothing happens at the sources where something else can happen.
CALM_ODDS = 40


@dataclass
class _Feed:
    relations: tuple[str, ...]
    at: int
    generation: int = 0


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
        self._audits_left, self._restarts = scenario.audits, scenario.restarts
        self.people = People(seed)
        self.counts: Counter[str] = Counter()
        # How often each view was filled, and what it was when a change of it was told as being taken.
        self._fillings: Counter[str] = Counter()
        self._told_at: dict[tuple[str, int], int] = {}
        self._plans: list[Foreseen] = []
        self.frozen: set[str] = set()
        # The groups of the run: it is the very list that the engine has.
        self._grouped: list[GroupMachine] = []
        self.now = self._delivered_at = 0.0
        self.runs = 0
        self._begin()

    # -- a run -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A new process, from the ledger."""
        self.runs += 1
        self._queues: dict[int, deque[m.Action]] = {}
        self._managers: dict[int, Managers] = {}
        self._cuts: dict[tuple[int, int], Mapping[str, SimulatedCut]] = {}
        self._ties: list[tuple[str, ...]] = []
        # When each view began its last job in this run, and when each group was first looked at.
        self.begun_at: dict[str, float] = {}
        self.groups_since: dict[int, float] = {}
        self._again = self._has_applied = False
        starts = starts_of(self.scenario, self.runs, self.ledger, self.sources)
        self._tied = GlobalTransactions(5.0, Overdue.SHOW_PARTS)
        units = Units(self._tied, {})
        limits = self.scenario.limits
        self.engine = Engine(starts.beginning, compare, units, limits, self._make)
        actions = self.engine.begin(self.now)
        before, self._grouped = self._grouped, self.engine.groups
        for views in (group.scope.views.keys() for group in before):
            parts = [g for g in self._grouped if not views.isdisjoint(g.scope.views)]
            self.counts["groups that part"] += len(parts) > 1
        self._feeds = {
            s: _Feed(self.engine.relations_of(s), starts.routed[s]) for s in sorted(self.sources)
        }
        self._on_their_way: dict[str, deque[Delivery]] = {s: deque() for s in self._feeds}
        self._take(actions)

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
                self._end_blocks()
                if is_over(self):
                    if self.runs >= self.scenario.runs_min:
                        return
                    self._begin()
                elif is_frozen(self) and not self._tied.held:
                    if not self.people.changes_mind:
                        self.frozen = not_shown(self)
                        return
                    self.people.approve_all()
                    self._pass_time()
                elif not self._pass_time() and not self._moves():
                    raise Stuck(described(self))
                continue
            if self._is_killed():
                self._begin()
                continue
            self.random.choice(moves)()
            if self._again:
                self._begin()
            if not self.random.randrange(10):
                self._pass_time()
        raise Stuck(f"not over after {STEPS_MAX} steps: {described(self)}")

    def _end_blocks(self) -> None:
        """Nothing is left to happen: what waits for more transactions has waited long enough."""
        waits = [g.is_idle and g.intake.integrator.waits_for_block for g in self.engine.groups]
        if any(waits):
            self.now += self.scenario.limits.block_seconds

    def _is_killed(self) -> bool:
        """Whether the process ends here: at any time, or when it has just applied a schema change."""
        has_applied, self._has_applied = self._has_applied, False
        if not self._kills or not self._is_filled:
            return False
        if not (has_applied if self.scenario.is_restless else not self.random.randrange(KILL_ODDS)):
            return False
        self._kills -= 1
        self.counts["kills"] += 1
        self._watch("kill")
        return True

    @property
    def _is_filled(self) -> bool:
        """Whether every view was shown once: one that was not must fit the schemas of when a run begins."""
        known = {*self.ledger.extents, *self.ledger.ended}
        return all(name in known for name in self.scenario.views_in(self.runs))

    def _moves(self) -> list[Callable[[], None]]:
        moves = self._answers()
        if moves and self.scenario.is_calm and self.random.randrange(CALM_ODDS):
            return moves
        if not moves and self.scenario.is_calm:
            self.late += late(self)
        for name, left in self._left.items():
            source = self.sources[name]
            if left and source.may_commit(left[0]):
                moves.append(lambda name=name: self._commit(name))  # type: ignore[misc]
            for number in source.hidden:
                moves.append(lambda s=source, n=number: s.show(n))  # type: ignore[misc]
        if self._audits_left and not self.random.randrange(20) and self.engine.groups:
            moves.append(self._audit)
        if self._restarts and not self.random.randrange(20):
            moves.append(self._restart)
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

    def _restart(self) -> None:
        """A source's server is restarted: cuts are lost, and feeds go on where they were."""
        self._restarts -= 1
        self.counts["restarts"] += 1
        source = self.sources[self.random.choice(sorted(self.sources))]
        source.restart()
        self._watch(f"{source.name} is restarted")

    def _commit(self, name: str) -> None:
        source, update = self.sources[name], self._left[name].popleft()
        is_hidden = isinstance(update, Write) and not self.random.randrange(3)
        if update == Alter(getattr(update, "relation", "")):
            filling = any(g.waits_for_filling for g in self.engine.listening)
            self.counts["drops while views are to be filled"] += filling
        source.commit(update, is_hidden=is_hidden)
        self._watch(f"{name} commits {source.end}: {update}")

    def _deliver(self, name: str) -> None:
        if self.engine.is_full(name):
            return
        feed, source = self._feeds[name], self.sources[name]
        items, feed.at = source.items(feed.at, self.random.randint(1, 4), feed.relations)
        delivery = Delivery(name, tuple(items), position(feed.at), source.life, feed.generation)
        self._watch(f"{name} delivers up to {feed.at}: {len(items)} items")
        # It may be on its way for a while: the feed can be sent back before it arrives.
        self._on_their_way[name].append(delivery)
        if self.random.randrange(2):
            self._arrive(name)

    def _arrive(self, name: str) -> None:
        """All that is on its way, in order."""
        while self._on_their_way[name]:
            delivery = self._on_their_way[name].popleft()
            if delivery.items:
                self._delivered_at = self.now
            self._step(m.FeedDelivered(delivery))
            due = ({change.source for change in g.intake.due} for g in self.engine.listening)
            self.counts["changes due at several sources"] += any(len(each) > 1 for each in due)

    def _next_action(self, group: int) -> None:
        action = self._queues[group].popleft()
        self._watch(f"group {group}: {type(action).__name__}")
        self._carry_out(group, action)

    def _manager_done(self, group: int, view: str) -> None:
        managers = self._managers[group]
        job, cuts = managers.todo[view].popleft()
        if view in job.concerned and not self._has_failed(
            group, refused(cuts, self.random), job.job
        ):
            change = {view: managers.computed(view, job, cuts)}
            self._step((group, m.ChangeComputed(job.job, view, change)))

    def _audit(self) -> None:
        self._audits_left -= 1
        group = self.random.choice(self.engine.groups)
        self._step((group.number, m.ReadWanted(self._audits_left)))

    def _pass_time(self) -> bool:
        """Go on to when the engine wants to be woken; False where it does not. Feeds say where they are."""
        for name in self._feeds:
            self._deliver(name)
        at = self.engine.wake_at
        if at == math.inf and self._tied.held:
            at = self.now + 1.0  # what is held back is overdue at some time
        if at == math.inf:
            return False
        # Not at once: feeds say several times a second where they are.
        self.now = min(max(self.now + 0.001, at), self.now + 1.0)
        self._step(m.TimePassed())
        return True

    # -- actions -----------------------------------------------------------------------------------

    def _carry_out(self, group: int, action: m.Action) -> None:
        match action:
            case m.OpenCuts():
                self._open(group, action)
            case m.ReleaseCuts(ticket):
                del self._cuts[group, ticket]
            case m.StartManagers(views, _, _, arrivals):
                self._managers[group] = Managers(views)
                self._managers[group].tell(arrivals)
            case m.StopManagers():
                self._managers.pop(group, None)
            case m.TellManagers(arrivals):
                self._managers[group].tell(arrivals)
            case m.StartJob():
                self._start_job(group, action)
            case m.Commit():
                self._commit_epoch(group, action)
            case m.Note(reached, positions, is_durable):
                if is_durable:
                    self._advance(positions)
                    self.ledger.enter(0)
                self._step((group, m.Noted(reached, is_durable)))
            case m.FillViews():
                self._fill(group, action)
            case m.ReadWhole():
                self._read(group, action)
            case m.CommitDefinitions():
                self._define(action)
            case m.FollowFeed(source, relations, at, _, generation):
                self.counts["feeds sent back"] += 1
                self._feeds[source] = _Feed(relations, at["n"], generation)
            case m.LookForDecision(plan):
                decision = self.people.decide(plan.reported)
                self._step((group, m.DecisionFound(plan.reported, decision)))
            case m.TellChange(plan, is_applied):
                self._tell_change(plan, is_applied=is_applied)
            case m.GroupEnded():
                self.counts["unions"] += 1
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

    def _tell_change(self, plan: Foreseen, *, is_applied: bool) -> None:
        """Whoever hears that a change is applied takes it that the views' rows are there."""
        self.counts["schema changes"] += is_applied
        self._has_applied = is_applied
        if plan.must_wait and not self.people.has_approved(plan.reported):
            self.audits.append(f"{plan.reported} was taken, and nobody has approved it")
        for view in plan.mappings().keys() - self.ledger.ended.keys():
            # The very plan: two groups may take one change.
            if not is_applied:
                self._told_at[view, id(plan)] = self._fillings[view]
                self._plans.append(plan)
            elif self._told_at.get((view, id(plan)), self._fillings[view]) == self._fillings[view]:
                self.audits.append(f"{view} is told to have its rows after {plan.reported}")

    def _open(self, group: int, action: m.OpenCuts) -> None:
        if self._failures and not self.random.randrange(15):
            self._failures -= 1
            self.counts["failures"] += 1
            error = away(next(iter(action.relations)))
            self._step((group, m.Failed(error, ticket=action.ticket)))
            return
        cuts = {name: self.sources[name].cut(r) for name, r in action.relations.items()}
        for name, cut in cuts.items():
            if cut.missing:
                error = lacks(name, cut.missing[0])
                self._step((group, m.Failed(error, ticket=action.ticket)))
                return
        self.counts["cuts that reflect no prefix"] += any(c.is_no_prefix for c in cuts.values())
        self._cuts[group, action.ticket] = cuts
        self._step((group, m.CutsOpened(action.ticket, cuts)))

    def _has_failed(self, group: int, error: SourceError | None, job: int | None = None) -> bool:
        """Whether there is an error; the group hears of it."""
        if error is not None:
            self.counts["broken queries"] += error.code in BROKEN
            self.counts["overtaken cuts"] += error.code == OVERTAKEN
            self._step((group, m.Failed(error, job)))
        return error is not None

    # -- computing ---------------------------------------------------------------------------------

    def _start_job(self, group: int, job: m.StartJob) -> None:
        managers = self._managers[group]
        cuts = self._cuts[group, job.ticket]
        if not job.keeps:
            del self._cuts[group, job.ticket]
        if self._has_failed(group, lost(cuts), job.job):
            return
        self.begun_at |= dict.fromkeys(job.concerned, self.now)
        self.counts["jobs of slow views"] += not self.scenario.slow.isdisjoint(job.concerned)
        managers.begin(job, cuts)

    def _fill(self, group: int, fill: m.FillViews) -> None:
        cuts = self._cuts.pop((group, fill.ticket))
        if self._has_failed(group, refused(cuts, self.random)):
            return
        contents = Contents(cuts, self._managers[group].views)
        contents.take_back_reflected(fill.waiting, fill.reflected)
        for name, view in fill.views.items():
            plan = fill.adaptations.get(name)
            self.counts["by Map-VA"] += plan is not None and plan.substitute is not None
            old = self.ledger.extents.get(name)
            self.ledger.extents[name] = (
                contents.evaluated(view) if plan is None else adapted(plan, old, contents).extent
            )
            self.ledger.views[name] = view
        self._fillings.update(list(fill.views))
        self._define(fill.definitions)
        self._advance(fill.positions)
        self._committed_ties()
        self.ledger.numbers.incarnations |= {name: self._fillings[name] for name in fill.views}
        self.ledger.show(fill.positions, cut_of(fill.positions), 0, is_step=False)
        self.ledger.enter(0)
        self._step((group, m.Filled(fill.views)))

    def _define(self, action: m.CommitDefinitions) -> None:
        ledger = self.ledger
        ledger.views |= {view.name: view for view in action.views}
        ledger.ended |= {view.name: effect.reason for view, effect, _ in action.ended}
        ledger.taken |= dict.fromkeys(action.told, action.taken)
        self._committed_ties()

    def _read(self, group: int, read: m.ReadWhole) -> None:
        """An audit: what the group's views would be, computed from their sources alone."""
        cuts = self._cuts.pop((group, read.ticket))
        if self._has_failed(group, lost(cuts)):
            return
        self.counts["audits"] += 1
        views = self._managers[group].views
        contents = Contents(cuts, views)
        contents.take_back_reflected(read.waiting, read.reflected)
        for name, view in views.items():
            found = contents.evaluated(view)
            if name in self.ledger.extents and found != self.ledger.extents[name]:
                self.audits.append(f"{name} differs: {self.ledger.extents[name]} for {found}")
        self._step((group, m.ReadingDone()))

    # -- the ledger --------------------------------------------------------------------------------

    def _commit_epoch(self, group: int, commit: m.Commit) -> None:
        ledger = self.ledger
        numbers = [int(n) for n in numbers_of(commit.batch)]
        shown = {number for each in commit.contents for found in each.values() for number in found}
        invariant(shown <= {*numbers}, "a list has changes of what is not committed with it")
        cut = cut_of({v: ledger.positions[v] for v in commit.views})
        changes = changes_of(commit.contents)
        for state in range(max(commit.states) + 1):
            for place, number in enumerate(numbers):
                if commit.states[place] != state:
                    continue
                origin = commit.batch[place].origin
                cut[origin.source] = max(cut.get(origin.source, 0), number_of(origin.position))
                for name, found in changes.items():
                    if number in found:
                        ledger.extents[name] = ledger.extents[name] + found[number]
            ledger.quiet_seconds = self.now - self._delivered_at
            is_last = state == max(commit.states)
            claim = cut_of(commit.positions) if is_last else cut
            ledger.show(commit.views, claim, state + 1)
        ledger.commits += 1
        self.counts["global transactions"] += len({id(a.unit) for a in commit.batch if a.unit})
        self._advance(commit.positions)
        ledger.enter(max(commit.states) + 1, places_of(commit.views, commit.batch, commit.states))
        self._committed_ties()
        self._managers[group].forget(commit.forget_upto)
        self._step((group, m.Committed(commit.number)))

    def _advance(self, positions: m.ViewPositions) -> None:
        for view, cut in positions.items():
            known = self.ledger.positions.setdefault(view, {})
            for source, at in cut.items():
                invariant(
                    source not in known or compare(source, at, known[source]) >= 0,
                    f"{view} goes back at {source}",
                    detail=f"from {known} to {cut}",
                )
                known[source] = at

    def _committed_ties(self) -> None:
        self.ledger.ties += self._ties
        self._ties = []
