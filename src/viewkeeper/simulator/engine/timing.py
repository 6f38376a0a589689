"""The engine in simulated time: how long a transaction takes until it is shown, and who is busy meanwhile.

MVC (1997), section 7, names two questions and leaves them open: how fresh views are that wait for each other, and at which load
the merge process is the bottleneck. Here the engine itself is driven by events in the order of their times. Nothing is
computed but times: a job takes its view's manager a while, a commit its group's thread, and each message the process
that decides, of which there is one. Everything is drawn from a seed, by numbers that do not depend on how views are
grouped: the same transactions and the same jobs' durations are seen merged and alone.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra import Bag
from viewkeeper.engine import messages as m
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.limits import Limits
from viewkeeper.engine.router import Engine
from viewkeeper.engine.transaction_ties import Units
from viewkeeper.engine.view import View
from viewkeeper.merging.global_transactions import GlobalTransactions, Overdue
from viewkeeper.simulator.engine.beginnings import EngineScenario, starts_of
from viewkeeper.simulator.engine.generator import SCHEMA
from viewkeeper.simulator.engine.sources import SimulatedSource, compare, number_of, position
from viewkeeper.simulator.engine.updates import Table, Write
from viewkeeper.simulator.engine.warehouse import SimulatedLedger
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

SOURCE = "s"
HUB = "r0"  # what all views share


@dataclass(frozen=True)
class Durations:
    """How long things take, in milliseconds; jobs in the mean, and exponentially."""

    message: float = 1.0
    feed: float = 1.0
    cuts: float = 2.0
    job: float = 20.0
    commit: float = 5.0


@dataclass(frozen=True)
class Study:
    """One run: ``views`` over a relation they share and one of their own each, and transactions at a mean rate.

    ``is_merged``: they move together. Else each is convergent, and a group by itself. ``batch_max``: transactions in one
    row of the table; the paper has one.
    """

    views: int
    per_second: float
    is_merged: bool
    batch_max: int = 50_000
    transactions: int = 200
    seed: int = 1
    durations: Durations = Durations()


@dataclass(frozen=True)
class Times:
    """What a run showed: the mean time to visibility, and the share of time that each kind of process was busy."""

    delay_ms: float
    merge_busy: float
    manager_busy: float
    commit_busy: float


@dataclass
class _Server:
    """Does one thing after the other."""

    free_at: float = 0.0
    busy: float = 0.0

    def end(self, now: float, duration: float) -> float:
        """When something ends that is given to it now."""
        self.busy += duration
        self.free_at = max(now, self.free_at) + duration
        return self.free_at


def timed(study: Study) -> Times:
    """Run a study until everything is shown."""
    return _TimedWorld(study).run()


@dataclass
class _TimedWorld:
    study: Study
    now: float = 0.0
    _agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        study = self.study
        names = [HUB, *(f"r{n}" for n in range(1, study.views + 1))]
        tables = {name: Table(Bag.of(SCHEMA, [(0, 0, 0)])) for name in names}
        self._source = SimulatedSource(SOURCE, tables)
        self._merge = _Server()
        self._managers: dict[str, _Server] = defaultdict(_Server)
        self._threads: dict[int, _Server] = defaultdict(_Server)
        self._cuts: dict[tuple[int, int], Any] = {}
        self._random = random.Random(f"jobs {study.seed}")
        self._arrived: dict[int, float] = {}
        self._delays: list[float] = []
        views = _views(names, study)
        scenario = EngineScenario({SOURCE: tables}, {}, views)
        sources = {SOURCE: self._source}
        beginning = starts_of(scenario, 1, SimulatedLedger(), sources).beginning
        limits = Limits(batch_transactions_max=study.batch_max)
        units = Units(GlobalTransactions(5.0, Overdue.SHOW_PARTS), {})
        self.engine = Engine(beginning, compare, units, limits)
        self._readers = {n: set(v.definition.relations) for n, v in views.items()}
        self._take(self.engine.begin(0.0))
        self._deliver(0)

    # -- time ----------------------------------------------------------------------------------------

    def _at(self, when: float, then: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), then))

    def run(self) -> Times:
        self._happen()  # the views are filled
        began = self.now
        self._merge.busy, self._delays = 0.0, []
        chance = random.Random(f"transactions {self.study.seed}")
        at = self.now
        for number in range(1, self.study.transactions + 1):
            at += chance.expovariate(self.study.per_second / 1000)
            relation = chance.choice([HUB, *(f"r{n}" for n in range(1, self.study.views + 1))])
            self._at(at, lambda n=number, r=relation: self._commit(n, r))  # type: ignore[misc]
        self._happen()
        took = self.now - began
        delay = sum(self._delays) / len(self._delays)
        busiest = max((s.busy for s in self._managers.values()), default=0.0)
        committing = max((s.busy for s in self._threads.values()), default=0.0)
        return Times(delay, self._merge.busy / took, busiest / took, committing / took)

    def _happen(self) -> None:
        while self._agenda:
            self.now, _, then = heapq.heappop(self._agenda)
            then()

    # -- what happens --------------------------------------------------------------------------------

    def _commit(self, number: int, relation: str) -> None:
        old, new = (number - 1, 0, 0), (number, 0, 0)
        rows = [row for row, _ in self._source.now[relation].rows]
        self._source.commit(Write(((relation, tuple(rows[:1]) or (old,), (new,)),)))
        self._at(self.now + self.study.durations.feed, lambda: self._deliver(number))

    def _deliver(self, number: int) -> None:
        relations = self.engine.relations_of(SOURCE)
        items, at = self._source.items(max(number - 1, 0), 1, relations)
        self._arrived[number] = self.now
        delivery = Delivery(SOURCE, tuple(items), position(at), self._source.life, 0)
        self._tell(m.FeedDelivered(delivery))

    def _tell(self, event: Any) -> None:
        """A message for the engine, which takes one after the other."""
        done = self._merge.end(self.now, self.study.durations.message)
        self._at(done, lambda: self._take(self.engine.step(event, self.now / 1000)))

    def _take(self, actions: Any) -> None:
        for group, action in actions:
            self._carry_out(group, action)

    def _carry_out(self, group: int, action: Any) -> None:
        durations, thread = self.study.durations, self._threads[group]
        match action:
            case m.OpenCuts(ticket, relations):
                opened = thread.end(self.now, durations.cuts)
                self._at(opened, lambda: self._open(group, ticket, relations))
            case m.StartJob(job, _, concerned):
                for view in concerned:
                    took = self._random.expovariate(1 / durations.job)
                    done = self._managers[view].end(self.now, took)
                    event = group, m.ChangeComputed(job, view, {view: {}})
                    self._at(done, lambda e=event: self._tell(e))  # type: ignore[misc]
            case m.Commit(number):
                shown = thread.end(self.now, durations.commit)
                self._at(shown, lambda: self._shown(group, number, action))
            case m.FillViews(_, views):
                filled = thread.end(self.now, durations.commit)
                self._at(filled, lambda: self._tell((group, m.Filled(views))))
            case m.Note(reached, _, is_durable):
                self._tell((group, m.Noted(reached, is_durable)))
            case m.ReportError(error):
                raise error

    def _open(self, group: int, ticket: int, relations: Any) -> None:
        cuts = {name: self._source.cut(names) for name, names in relations.items()}
        self._tell((group, m.CutsOpened(ticket, cuts)))

    def _shown(self, group: int, number: int, commit: m.Commit) -> None:
        for arrival in commit.batch:
            since = self._arrived[int(number_of(arrival.origin.position))]
            changed = set(arrival.transaction.relations)
            readers = [v for v in commit.views if changed & self._readers[v]]
            self._delays += [self.now - since] * len(readers)
        self._tell((group, m.Committed(number)))


def _views(names: list[str], study: Study) -> dict[str, View]:
    relations = [CatalogRelation(RelationName(SOURCE, name), SCHEMA, ()) for name in names]
    level = "complete" if study.is_merged else "convergent"
    found: dict[str, View] = {}
    for number in range(1, study.views + 1):
        text = (
            f"-- consistency: {level}\nSELECT x.k AS k FROM {SOURCE}.{HUB} AS x "
            f"JOIN {SOURCE}.r{number} AS y ON x.k = y.k"
        )
        found[f"v{number}"] = View(parse_view(f"v{number}", text, Catalog(tuple(relations))), text)
    return found
