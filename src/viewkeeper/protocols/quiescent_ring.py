"""The quiescent ring: a token only when somebody needs it, and nodes that know nobody but the warehouse.

Paper: Rings (2002), section 4.4, Figure 2. Level: strong, complete when one update is put in at a time.
Assumes: reliable channels, in no particular order, and a view of one term.

The ring becomes a star: every visit starts and ends at the warehouse, so increments need no numbers. A
node whose data changed asks for the token. The warehouse creates one, or notes the wish while one is
out. The token goes round in the ring's order as long as an entry is on its way; when all are ⊥ it skips
to the next node that waits, and is destroyed when none does. An entry is finished one node before its
own: then it has met all others.

Besides this data-driven refresh there are two that the warehouse drives (section 4.4 names them): when a
period is over, or when a reader asks. Then nodes ask for nothing; the token calls on each node once for
each demand, and brings every entry home. It takes no changes in on the rest of the way, so a demand is
met after at most 2n − 1 visits however busy the sources are.

| here | Figure 2 |
|---|---|
| `QuiescentNode` | lines 1-12; ``_asked`` past ``_put_in`` is sent_request |
| `QuiescentWarehouse._requested` | lines 13-18 |
| `QuiescentWarehouse._returned` | lines 19-29 |
| `QuiescentWarehouse._next_holder` | lines 31-36 |
| ``_holder`` is None | holder = −1 |
| ``_asked[i] > _cut[i]`` | pending[i] |

Where we differ:
- Line 33 never advances and tests pending of an unbound name; we go on to the successor of the successor.
- Line 34 finds nobody when the only node that waits is the last holder: its change would wait for ever.
  The search here ends *with* the last holder.
- A request names the transaction it is about, and the token names those that are in. A request that was
  overtaken by the token (channels reorder) is thus known to be met; the printed flag sends the token out
  once more, for nothing.
- A node that put in one of several waiting changes asks again by itself (the print has no such mode).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.errors import UsageError, invariant
from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.ring_machines import DataNode, Machine, RingProtocol, RingSystem
from viewkeeper.protocols.ring_messages import (
    WAREHOUSE,
    Action,
    AnswerQuery,
    Event,
    PassToken,
    QueryArrived,
    RefreshDue,
    RequestToken,
    TokenArrived,
    TokenRequested,
)
from viewkeeper.protocols.tokens import (
    LocalData,
    Token,
    require_linear,
    sources_of,
    view_change,
    visited,
    without_nothing,
)
from viewkeeper.timeline import CutVector
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName, ViewDefinition


class Refresh(enum.Enum):
    """Who sets the token going: a node with a change, the warehouse's clock, or a reader."""

    ON_UPDATE = "update"
    PERIODIC = "periodic"
    ON_QUERY = "query"


class QuiescentRing(RingProtocol):
    """Puts the machines of a quiescent ring together."""

    name = "quiescent-ring"
    asks = "rows by key where the token is: n visits, and none while nothing happens"
    paper = "Rings, section 4.4"

    @staticmethod
    def system(
        definition: ViewDefinition,
        extent: Any,
        contents: Mapping[RelationName, Any],
        *,
        one_at_a_time: bool = False,
        refresh: Refresh = Refresh.ON_UPDATE,
        updates_per_request: int = 1,
    ) -> RingSystem:
        """Nodes with their initial contents around a warehouse; no token exists yet.

        With ``updates_per_request`` k, a node asks only when k changes wait: up to k − 1 of them stay
        out of the view until the token comes by for another reason.
        """
        require_linear(QuiescentRing.name, definition, one_term=True)
        driven = refresh is Refresh.ON_UPDATE
        if one_at_a_time and not driven:
            raise UsageError(
                "protocol-not-applicable",
                f"{QuiescentRing.name} can't show every update when the warehouse drives the refresh",
                detail=f"refresh {refresh.value} gathers what was committed since the last one",
                hint=f"refresh on {Refresh.ON_UPDATE.value}, or let updates be gathered",
            )
        nodes = {
            source: QuiescentNode(
                LocalData(definition, source, contents),
                one_at_a_time=one_at_a_time,
                updates_per_request=updates_per_request if driven else None,
            )
            for source in sources_of(definition.terms[0])
        }
        return RingSystem(QuiescentRing.name, nodes, QuiescentWarehouse(definition, refresh))


class QuiescentNode(DataNode):
    """A node of the star; ``updates_per_request`` None means that it never asks for the token."""

    def __init__(
        self, data: LocalData, *, one_at_a_time: bool, updates_per_request: int | None
    ) -> None:
        super().__init__(data, one_at_a_time=one_at_a_time)
        self.updates_per_request = updates_per_request
        self._asked = 0
        self._put_in = 0

    def _token_arrived(self, token: Token) -> Iterator[Action]:
        taken = self._taken() if token.gathers else ()
        left, _ = visited(token, self.data, taken)
        self.data.advance(taken)
        if taken:
            self._put_in = taken[-1].number
        yield PassToken(WAREHOUSE, without_nothing(left))
        yield from self._requests()

    def _requests(self) -> Iterator[Action]:
        """Ask for the token, unless it is asked for already or too little waits."""
        if self.updates_per_request is None or self._asked > self._put_in:
            return
        if len(self._queue) >= self.updates_per_request:
            self._asked = self._queue[-1].number
            yield RequestToken(self.data.source, self._asked)


@dataclass(frozen=True)
class _Demand:
    """A reader who waits for a refresh; ``goal`` is what the view must include, once it is known."""

    query: int
    refresh: int
    goal: CutVector | None = None


class QuiescentWarehouse(Machine):
    """The centre of the star: it creates the token, sends it out, and destroys it."""

    def __init__(self, definition: ViewDefinition, refresh: Refresh = Refresh.ON_UPDATE) -> None:
        self.definition = definition
        self.refresh = refresh
        self.assembly = Assembly(definition.terms[0])
        self.ring = sources_of(definition.terms[0])
        self._holder: str | None = None
        # What each node asked for, and what each node had put in when the token came back from it.
        self._asked = dict.fromkeys(self.ring, 0)
        self._cut = CutVector.start(self.ring)
        # Refreshes that the warehouse wants by itself, and the last one each node was visited for.
        self._refreshes = 0
        self._refreshed = dict.fromkeys(self.ring, 0)
        self._demands: list[_Demand] = []

    @property
    def is_idle(self) -> bool:
        return self._holder is None and not self._demands

    def step(self, event: Event) -> tuple[Action, ...]:
        match event:
            case TokenRequested(source, upto):
                return tuple(self._requested(source, upto))
            case TokenArrived(token):
                return tuple(self._returned(token))
            case RefreshDue():
                self._refreshes += 1
                return tuple(self._start())
            case QueryArrived(query):
                return tuple(self._queried(query))
            case _:
                invariant(False, f"the warehouse of the quiescent ring got {event}")
                return ()

    def _requested(self, source: str, upto: int) -> Iterator[Action]:
        self._asked[source] = max(self._asked[source], upto)
        yield from self._start()

    def _queried(self, query: int) -> Iterator[Action]:
        if self.refresh is not Refresh.ON_QUERY:
            yield AnswerQuery(query)
            return
        self._refreshes += 1
        self._demands.append(_Demand(query, self._refreshes))
        yield from self._start()

    def _start(self) -> Iterator[Action]:
        """Create a token if there is none and somebody waits."""
        if self._holder is None:
            token = Token.empty(0, self.ring, self._cut)
            yield from self._sent_on(token, self._next_holder(self.ring[-1]))

    def _returned(self, token: Token) -> Iterator[Action]:
        """The token is back from its holder: what is finished is installed, and it goes on."""
        holder = self._holder
        invariant(holder is not None, "the token came back from nobody")
        previous = str(holder)
        self._cut = token.cut
        following = self.succ(previous)
        finished = token.entry(following)
        if finished is not None:
            yield InstallChange(
                view_change(self.definition, self.assembly, finished), finished.cut, ()
            )
            token = token.without(following)
        self._holder = None
        yield from self._answered(token)
        yield from self._sent_on(
            token, self._next_holder(previous) if token.is_empty else following
        )

    def _sent_on(self, token: Token, to: str | None) -> Iterator[Action]:
        self._holder = to
        if to is None:
            return  # the token is destroyed: its cut is kept here, and its entries are all ⊥
        gathers = self.refresh is Refresh.ON_UPDATE or self._refreshed[to] < self._refreshes
        self._refreshed[to] = self._refreshes
        yield PassToken(to, replace(token, gathers=gathers))

    def succ(self, source: str) -> str:
        """The node that follows on the ring."""
        return self.ring[(self.ring.index(source) + 1) % len(self.ring)]

    def _next_holder(self, previous: str) -> str | None:
        """The next node that waits, in the ring's order, the previous holder last; None if none."""
        candidate = self.succ(previous)
        for _ in self.ring:
            if self._waits(candidate):
                return candidate
            candidate = self.succ(candidate)
        return None

    def _waits(self, source: str) -> bool:
        return self._asked[source] > self._cut[source] or self._refreshed[source] < self._refreshes

    def _answered(self, token: Token) -> Iterator[Action]:
        """Answer the readers whose refresh is over.

        It is over when every node was visited for it, and what those visits put in is installed:
        everything up to the oldest entry that is still on its way.
        """
        oldest = token.oldest()
        installed = token.cut if oldest is None else oldest.before
        visited_for = min(self._refreshed.values())
        waiting: list[_Demand] = []
        for demand in self._demands:
            if demand.goal is None and visited_for >= demand.refresh:
                demand = replace(demand, goal=token.cut)
            if demand.goal is not None and installed.includes(demand.goal):
                yield AnswerQuery(demand.query)
            else:
                waiting.append(demand)
        self._demands = waiting
