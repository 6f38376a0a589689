"""The world of the ring protocols: machines at the sources, and channels without any order.

Every message that is on its way can be the next to arrive. After every step the two invariants of the paper's
proof are checked (`invariants`), by evaluation from scratch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from viewkeeper.errors import invariant
from viewkeeper.protocols.ring_machines import DataNode, Machine, RingSystem
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
from viewkeeper.simulator.kernel.exploration import Explored, explore_all
from viewkeeper.simulator.kernel.journal import Journal, Told, rows_text
from viewkeeper.simulator.kernel.world import Act, Choice, Commit, Deliver, Network, Node, Route
from viewkeeper.simulator.one_view import OneViewWorld
from viewkeeper.simulator.rings.invariants import RingInvariants
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.source import ScriptedSource
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import RelationName, ViewDefinition

MakeSystem = Callable[[ViewDefinition, Any, Mapping[RelationName, Any]], RingSystem]


@dataclass(frozen=True, order=True)
class Ask(Act):
    """A reader asks the warehouse for the view."""


@dataclass(frozen=True, order=True)
class Tick(Act):
    """The warehouse's period is over."""


@dataclass(frozen=True)
class Query:
    """A reader's question: what was committed when it was asked, and the state it was answered with."""

    committed: CutVector
    state: int | None = None


@dataclass(frozen=True)
class Demands:
    """How often readers ask and periods end, beside what the sources do."""

    queries: int = 0
    ticks: int = 0


class RingSource(ScriptedSource):
    """A source with its data node: what it commits, the node knows at once."""

    def __init__(self, name: str, script: tuple[Transaction, ...], machine: DataNode) -> None:
        super().__init__(name, script, inversions=False)
        self.machine = machine

    def take_effect(self, made: Transaction) -> None:
        """The node has the data."""

    def act(self, act: Act) -> Iterable[Action]:
        return self.machine.step(TransactionCommitted(self.commit()))

    def step(self, sender: str, event: Event) -> Iterable[Action]:
        return self.machine.step(event)

    @property
    def waits_for(self) -> str | None:
        return None if self.machine.is_idle else "the token"


class RingWarehouse(Node):
    """The warehouse of a ring; readers ask it, and its periods end, as often as is demanded."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.queries: dict[int, Query] = {}
        self.ticks = 0

    def act(self, act: Act) -> Iterable[Action]:
        if isinstance(act, Ask):
            return self.machine.step(QueryArrived(len(self.queries)))
        self.ticks += 1
        return self.machine.step(RefreshDue())

    def step(self, sender: str, event: Event) -> Iterable[Action]:
        return self.machine.step(event)

    @property
    def waits_for(self) -> str | None:
        unanswered = [number for number, query in self.queries.items() if query.state is None]
        if unanswered:
            return f"an answer to readers' questions {unanswered}"
        return None if self.machine.is_idle else "increments"


def _to_warehouse(sender: str, message: Any) -> str:
    return WAREHOUSE


def _counted_token(message: PassToken) -> Mapping[str, int]:
    rows = sum(len(entry.rows) for entry in message.token.entries if entry is not None)
    return {"tokens": 1, "messages": 1, "rows": rows}


class RingWorld(OneViewWorld):
    """Everything there is in a run of a ring. ``visits`` counts the tokens that reached a source."""

    # No ring ever asks a source: "queries" is what other protocols count.
    counted = ("tokens", "increments", "requests", "visits", "rows", "messages", "queries")
    routes: ClassVar = {
        PassToken: Route(
            lambda sender, action: str(action.to),
            lambda action: TokenArrived(action.token),
            _counted_token,
        ),
        SendIncrement: Route(
            _to_warehouse,
            lambda action: IncrementArrived(action.increment),
            lambda action: {"increments": 1, "messages": 1},
        ),
        RequestToken: Route(
            _to_warehouse,
            lambda action: TokenRequested(action.source, action.upto),
            lambda action: {"requests": 1, "messages": 1},
        ),
    }

    def __init__(
        self,
        scenario: Scenario,
        make_system: MakeSystem,
        demands: Demands = Demands(),
        *,
        checked: bool = True,
        journal: Journal | None = None,
    ) -> None:
        extent = scenario.extent
        system = make_system(scenario.definition, extent, scenario.initial)
        nodes: dict[str, Node] = {
            name: RingSource(name, scenario.scripts[name], node)
            for name, node in sorted(system.nodes.items())
        }
        nodes[WAREHOUSE] = RingWarehouse(system.warehouse)
        channels = {to: tuple((sender, to) for sender in nodes) for to in nodes}
        super().__init__(nodes, channels, Network(fifo=False), extent, journal)
        self.demands = demands
        # How far the serial order of each term is: the cut of its token, or of the last one.
        self.serial_cuts = [CutVector.start(sources_of(term)) for term in scenario.definition.terms]
        self.invariants = RingInvariants(scenario) if checked else None
        self.carry_out_all(WAREHOUSE, system.tokens)

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """As in every world; but a basic ring's token moves for ever: the run is over when it moves for nothing."""
        found = super().choices()
        acts = [choice for choice in found if isinstance(choice, Act)]
        last_is_due = self._last_demand_is_due(acts)
        warehouse, demands = self.warehouse, self.demands
        if len(warehouse.queries) < demands.queries or (last_is_due and demands.queries):
            acts.append(Ask(WAREHOUSE))
        if warehouse.ticks < demands.ticks or (last_is_due and demands.ticks):
            acts.append(Tick(WAREHOUSE))
        if not acts and self.is_settled:
            return []
        return [*acts, *(choice for choice in found if isinstance(choice, Deliver))]

    def _last_demand_is_due(self, commits: list[Act]) -> bool:
        # When the warehouse drives the refresh, what was committed since the last demand waits for
        # the next one; a run must end with one more, or rest could not be told from neglect.
        idle = all(source.machine.is_idle for source in self.sources.values())
        return not commits and self.warehouse.machine.is_idle and not idle

    def take(self, choice: Choice) -> None:
        """Make it happen, and check the invariants."""
        if isinstance(choice, Ask):
            self.warehouse.queries[len(self.warehouse.queries) + 1] = Query(self.committed)
        super().take(choice)
        if self.invariants is not None:
            self.invariants.check(self.tokens, self.serial_cuts, self.states[-1], self.outstanding)

    def arrived(self, sender: str, to: str, event: Event) -> None:
        super().arrived(sender, to, event)
        self.counters["visits"] += to != WAREHOUSE and isinstance(event, TokenArrived)

    def sent(self, sender: str, to: str, message: Event) -> None:
        super().sent(sender, to, message)
        if isinstance(message, TokenArrived):
            self.serial_cuts[message.token.term] = message.token.cut

    def carry_out(self, sender: str, action: Action) -> None:
        if isinstance(action, AnswerQuery):
            asked = self.warehouse.queries[action.query]
            self.warehouse.queries[action.query] = Query(asked.committed, len(self.states) - 1)
        else:
            super().carry_out(sender, action)

    # -- what there is -----------------------------------------------------------------------------

    @property
    def warehouse(self) -> RingWarehouse:
        return cast(RingWarehouse, self.nodes[WAREHOUSE])

    @property
    def committed(self) -> CutVector:
        return CutVector.of({name: source.committed for name, source in self.sources.items()})

    @property
    def on_the_way(self) -> list[Event]:
        return [event for channel in self.channels.values() for event in channel]

    @property
    def system(self) -> RingSystem:
        """The machines, put together again."""
        nodes = {name: source.machine for name, source in self.sources.items()}
        return RingSystem("", nodes, self.warehouse.machine)

    @property
    def is_settled(self) -> bool:
        return self.system.is_settled(self.on_the_way)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every token there is, on its way or kept by a node."""
        moving = [e.token for e in self.on_the_way if isinstance(e, TokenArrived)]
        kept = [token for source in self.sources.values() for token in source.machine.kept]
        return (*moving, *kept)

    @property
    def outstanding(self) -> tuple[Any, ...]:
        """The changes of increments that were sent and are not installed."""
        moving = [e.increment for e in self.on_the_way if isinstance(e, IncrementArrived)]
        return tuple(i.change for i in (*moving, *self.warehouse.machine.waiting))

    @property
    def identity(self) -> Any:
        """Everything that what happens from here on depends on: the invariants hold in every state, so that
        none need be remembered; nor does it matter when a message was sent."""
        moving = Counter((to, event) for to, channel in self.channels.items() for event in channel)
        return (
            self.committed,
            frozenset(moving.items()),
            self.states[-1],
            (len(self.warehouse.queries), self.warehouse.ticks),
            (self.warehouse.machine, *(source.machine for source in self.sources.values())),
        )

    # -- in words ----------------------------------------------------------------------------------

    def told(self, sender: str, thing: Any) -> Told | None:
        match thing:
            case Commit():
                told = self.told_act(thing)
                # The node is where the data is: no message announces it.
                return None if told is None else Told("commit", "", f"{told.label} {told.text}")
            case TokenArrived(token):
                label = "token" if token.term == 0 else f"token of term {token.term + 1}"
                text = f"{token_text(token)} at {token.cut}"
                return Told("send", label, text, facts={"token": token})
            case IncrementArrived(increment):
                term = f" of term {increment.term + 1}" if increment.term else ""
                label = f"increment {increment.number}{term}"
                return Told("send", label, f"Δ_F {rows_text(increment.change)} to {increment.cut}")
            case TokenRequested(source, upto):
                return Told("send", f"request for {source}#{upto}")
        return None


def token_text(token: Token) -> str:
    """The token in the paper's notation: one entry for each node, ⊥ where there is none."""
    entries = zip(token.ring, token.entries, strict=True)
    return (
        "[" + ", ".join(f"{s}: {'⊥' if e is None else rows_text(e.rows)}" for s, e in entries) + "]"
    )


# -- every order ------------------------------------------------------------------------------------


def explored(world: RingWorld) -> Explored:
    """Go through every interleaving from here; raises InvariantViolated where something is wrong.

    A quiescent ring comes to rest on every path, and with it all changes are in the view.
    """
    return explore_all(world, _require_rest)


def _require_rest(world: RingWorld, path: tuple[Choice, ...]) -> None:
    invariant(not world.on_the_way, "messages are on their way in a state of rest")
    # With the first invariant this says that the view is the one after all transactions.
    committed = dict(world.committed).items()
    invariant(
        all(dict(cut).items() <= committed for cut in world.serial_cuts),
        "changes wait for ever in a state of rest",
        detail=f"{world.serial_cuts} of {world.committed}",
    )
