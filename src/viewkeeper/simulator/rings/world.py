"""The simulated world of the ring protocols: machines at the sources, and channels without any order.

As in `simulator.world`, nothing happens by itself: `choices` lists what could, `take` makes it happen. Every
message that is on its way can be the next to arrive. After every step the two invariants of the paper's
proof are checked (`invariants`), by evaluation from scratch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.ring_machines import Machine, RingSystem
from viewkeeper.protocols.ring_messages import (
    WAREHOUSE,
    Action,
    AnswerQuery,
    Event,
    IncrementArrived,
    PassToken,
    QueryArrived,
    RefreshDue,
    RequestToken,
    SendIncrement,
    TokenArrived,
    TokenRequested,
    TransactionCommitted,
)
from viewkeeper.protocols.tokens import Token, sources_of
from viewkeeper.simulator.choices import Commit, Deliver
from viewkeeper.simulator.rings.invariants import RingInvariants
from viewkeeper.simulator.rings.journal import Envelope, RingJournal
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Cut
from viewkeeper.views.definition import RelationName, ViewDefinition

STEPS_MAX = 20_000

MakeSystem = Callable[[ViewDefinition, Any, Mapping[RelationName, Any]], RingSystem]


@dataclass(frozen=True, order=True)
class Ask:
    """A reader asks the warehouse for the view."""


@dataclass(frozen=True, order=True)
class Tick:
    """The warehouse's period is over."""


Choice = Commit | Deliver | Ask | Tick


@dataclass(frozen=True)
class Query:
    """A reader's question: what was committed when it was asked, and the state it was answered with."""

    committed: Cut
    state: int | None = None


@dataclass
class RingCounters:
    """What was sent. ``visits`` counts the tokens that reached a source."""

    tokens: int = 0
    increments: int = 0
    requests: int = 0
    visits: int = 0
    rows: int = 0

    @property
    def messages(self) -> int:
        return self.tokens + self.increments + self.requests

    def as_dict(self) -> dict[str, int]:
        # "queries" is what other protocols count: here nobody ever asks a source anything.
        return {**vars(self), "messages": self.messages, "queries": 0}


@dataclass(frozen=True)
class Demands:
    """How often readers ask and periods end, beside what the sources do."""

    queries: int = 0
    ticks: int = 0


class RingWorld:
    """Everything there is in a run of a ring."""

    def __init__(
        self,
        scenario: Scenario,
        make_system: MakeSystem,
        demands: Demands = Demands(),
        *,
        checked: bool = True,
        journal: RingJournal | None = None,
    ) -> None:
        extent = scenario.extent
        self.scenario = scenario
        self.system = make_system(scenario.definition, extent, scenario.initial)
        self.committed = Cut.start(scenario.scripts)
        self.demands = demands
        self.time = 0
        self.steps = 0
        self.states: list[Any] = [extent]
        self.claims: list[Cut] = [self.committed]
        self.installed_at: list[int] = [0]
        self.queries: dict[int, Query] = {}
        self.ticks = 0
        self.counters = RingCounters()
        self.journal = journal
        # How far the serial order of each term has come: the cut of its token, or of the last one.
        self.serial_cuts = [Cut.start(sources_of(term)) for term in scenario.definition.terms]
        self.invariants = RingInvariants(scenario) if checked else None
        self.on_the_way: list[Envelope] = []
        for action in self.system.tokens:
            self._carry_out(WAREHOUSE, action)

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that could happen next; empty when the run is over.

        A basic ring's token moves for ever: the run is over when it moves for nothing.
        """
        found: list[Choice] = [
            Commit(source)
            for source, script in sorted(self.scenario.scripts.items())
            if self.committed[source] < len(script)
        ]
        last_is_due = self._last_demand_is_due(found)
        if len(self.queries) < self.demands.queries or (last_is_due and self.demands.queries):
            found.append(Ask())
        if self.ticks < self.demands.ticks or (last_is_due and self.demands.ticks):
            found.append(Tick())
        if found or not self.is_settled:
            found += [Deliver(index) for index in range(len(self.on_the_way))]
        return found

    def _last_demand_is_due(self, commits: list[Choice]) -> bool:
        # When the warehouse drives the refresh, what was committed since the last demand waits for
        # the next one; a run must end with one more, or nobody could tell rest from neglect.
        return (
            not commits
            and self.system.warehouse.is_idle
            and not all(node.is_idle for node in self.system.nodes.values())
        )

    @property
    def is_settled(self) -> bool:
        return self.system.is_settled(envelope.event for envelope in self.on_the_way)

    @property
    def machines(self) -> dict[str, Machine]:
        return {WAREHOUSE: self.system.warehouse, **self.system.nodes}

    def take(self, choice: Choice) -> None:
        """Make it happen, and check the invariants."""
        self.steps += 1
        invariant(self.steps < STEPS_MAX, "the ring does not come to rest")
        match choice:
            case Commit(source):
                transaction = self.scenario.scripts[source][self.committed[source]]
                self.committed = self.committed.advanced(source, transaction.number)
                if self.journal is not None:
                    self.journal.committed(transaction)
                self._step(source, TransactionCommitted(transaction))
            case Deliver(index):
                envelope = self.on_the_way.pop(index)
                self._note_arrival(envelope)
                self._step(envelope.to, envelope.event)
            case Ask():
                number = len(self.queries) + 1
                self.queries[number] = Query(self.committed)
                self._step(WAREHOUSE, QueryArrived(number))
            case Tick():
                self.ticks += 1
                self._step(WAREHOUSE, RefreshDue())
        if self.invariants is not None:
            self.invariants.check(self.tokens, self.serial_cuts, self.states[-1], self.outstanding)

    def _note_arrival(self, envelope: Envelope) -> None:
        if envelope.to != WAREHOUSE and isinstance(envelope.event, TokenArrived):
            self.counters.visits += 1
        if self.journal is not None:
            self.journal.delivered(envelope)

    def _step(self, place: str, event: Event) -> None:
        for action in self.machines[place].step(event):
            self._carry_out(place, action)

    def _carry_out(self, place: str, action: Action) -> None:
        match action:
            case PassToken(to, token):
                self.counters.tokens += 1
                self.counters.rows += sum(len(e.rows) for e in token.entries if e is not None)
                self.serial_cuts[token.term] = token.cut
                self._send(place, to, TokenArrived(token))
            case SendIncrement(increment):
                self.counters.increments += 1
                self._send(place, WAREHOUSE, IncrementArrived(increment))
            case RequestToken(source, upto):
                self.counters.requests += 1
                self._send(place, WAREHOUSE, TokenRequested(source, upto))
            case AnswerQuery(query):
                asked = self.queries[query]
                self.queries[query] = Query(asked.committed, len(self.states) - 1)
            case InstallChange(change, cut, _):
                self.states.append(self.states[-1] + change)
                self.claims.append(cut)
                self.installed_at.append(self.time)
                if self.journal is not None:
                    self.journal.installed(action, self.states[-1])

    def _send(self, sender: str, to: str, event: Event) -> None:
        envelope = Envelope(sender, to, event, self.time)
        self.on_the_way.append(envelope)
        if self.journal is not None:
            self.journal.sent(envelope)

    # -- what the invariants are about -------------------------------------------------------------

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every token there is, on its way or kept by a node."""
        moving = [e.event.token for e in self.on_the_way if isinstance(e.event, TokenArrived)]
        kept = [token for node in self.system.nodes.values() for token in node.kept]
        return (*moving, *kept)

    @property
    def outstanding(self) -> tuple[Any, ...]:
        """The changes of increments that were sent and are not installed."""
        moving = [
            e.event.increment for e in self.on_the_way if isinstance(e.event, IncrementArrived)
        ]
        return tuple(i.change for i in (*moving, *self.system.warehouse.waiting))

    # -- at the end, and for exploration -----------------------------------------------------------

    def require_finished(self) -> None:
        """Nothing can happen any more: then nothing may be waiting either (liveness)."""
        invariant(not self.choices(), "the run is not over")
        busy = [place or "the warehouse" for place, m in self.machines.items() if not m.is_idle]
        invariant(not busy, "somebody waits for ever: nothing can happen", detail=f"{busy}")
        unanswered = [number for number, query in self.queries.items() if query.state is None]
        invariant(not unanswered, "readers wait for ever", detail=f"queries {unanswered}")

    def forked(self) -> RingWorld:
        """A copy that goes its own way; what never changes is shared."""
        shared: list[Any] = [self.scenario, self.scenario.definition, *self.on_the_way]
        shared += [*self.claims, *self.serial_cuts, self.committed]
        for script in self.scenario.scripts.values():
            shared += script
        for node in self.system.nodes.values():
            shared += node.data.assemblies.values()
        shared.append(getattr(self.system.warehouse, "assembly", None))
        return copy.deepcopy(self, {id(thing): thing for thing in shared if thing is not None})
