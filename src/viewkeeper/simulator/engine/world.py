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

from viewkeeper.algebra import Bag
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
from viewkeeper.simulator.engine.updates import Write
from viewkeeper.simulator.engine.warehouse import SimulatedLedger, cut_of

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
        self._people = People(seed)
        self.counts: Counter[str] = Counter()
        # How often each view was filled, and what it was when a change of it was told as being taken.
        self._fillings: Counter[str] = Counter()
        self._told_at: dict[tuple[str, int], int] = {}
        self._plans: list[Foreseen] = []
        self.frozen: set[str] = set()
        self.now = 0.0
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
                if self._is_over():
                    if self.runs >= self.scenario.runs_min:
                        return
                    self._begin()
                elif self._is_frozen() and not self._tied.held:
                    if not self._people.changes_mind:
                        self.frozen = self._not_shown()
                        return
                    self._people.approve_all()
                    self._pass_time()
                elif not self._pass_time() and not self._moves():
                    raise Stuck(self._described())
                continue
            if self._is_killed():
                self._begin()
                continue
            self.random.choice(moves)()
            if self._again:
                self._begin()
            if not self.random.randrange(10):
                self._pass_time()
        raise Stuck(f"not over after {STEPS_MAX} steps: {self._described()}")

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

    def _is_frozen(self) -> bool:
        """Whether nothing moves before somebody has another mind about a schema change."""
        waiting = self._unsettled()
        asked = [g for g in waiting if self._waits_for_people(g)]
        # Groups that come to one end wait for each other, and their successor for all of them.
        others = [g for g in waiting if g not in asked]
        return bool(asked) and all(
            g.is_idle and (g.predecessors or g.intake.union is not None) for g in others
        )

    def _not_shown(self) -> set[str]:
        """The views that wait, those included whose end waits for the filling of others."""
        moving = [g for g in self.engine.listening if g.is_over or self._is_at_rest(g)]
        return {*self.ledger.views} - {view for group in moving for view in group.scope.views}

    def _unsettled(self) -> list[GroupMachine]:
        return [g for g in self.engine.listening if not (g.is_over or self._is_at_rest(g))]

    def _waits_for_people(self, group: GroupMachine) -> bool:
        change = group.waits_for_decision
        return change is not None and self._people.has_rejected(change)

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
            self._step(m.FeedDelivered(self._on_their_way[name].popleft()))

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

    def _is_over(self) -> bool:
        """Whether everything is shown."""
        ends = {name: position(source.end) for name, source in self.sources.items()}
        return self.engine.has_applied(ends) and all(
            group.is_over or self._is_at_rest(group) for group in self.engine.listening
        )

    def _is_at_rest(self, group: GroupMachine) -> bool:
        return group.is_idle and group.is_settled and not group.predecessors

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
                self._feeds[source] = _Feed(relations, at["n"], generation)
            case m.LookForDecision(plan):
                decision = self._people.decide(plan.reported)
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
        if plan.must_wait and not self._people.has_approved(plan.reported):
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
                cut[origin.source] = max(cut.get(origin.source, 0), number_of(origin.position))
                for name, found in changes.items():
                    if number in found:
                        ledger.extents[name] = ledger.extents[name] + found[number]
            is_last = state == max(commit.states)
            claim = cut_of(commit.positions) if is_last else cut
            ledger.show(commit.views, claim, state + 1)
        ledger.commits += 1
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
