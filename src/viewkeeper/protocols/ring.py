"""The basic ring: a token goes round the sources for ever, and gathers changes of the view.

Paper: Rings (2002), section 4.2, Figure 1. Level: strong, complete when one update is put in at a
time. Assumes: reliable channels, in no particular order, and a view of one term.

Sources never answer questions; instead the token visits them. A node puts the sum of its changes since
the last visit into its entry of the token, and joins its data *without* those changes into the entries
of all others. When the token is back, the node's entry has met every other source exactly once, each
in the state it had in the serial order of visits: it is the next change of the view and goes to the
warehouse. With n sources, n changes are on their way at once, in one message.

| here | Figure 1 |
|---|---|
| `RingNode._token_arrived` | lines 1-10 |
| `DataNode.step` | lines 11-13; ``_queue`` sums up to Δ_i |
| `NumberedIncrements.step`, `RingWarehouse._due` | lines 14-17 |
| ``one_at_a_time`` | the remark after Figure 1 |

Where we differ: the print starts next_sn at 0, but the first increment has number 1 and would wait for
ever; we start at 1. An empty Δ_F is not sent, as printed; therefore every increment names the whole cut
at which the view then stands, including changes that had no effect by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.ring_machines import (
    DataNode,
    NumberedIncrements,
    RingProtocol,
    RingSystem,
)
from viewkeeper.protocols.ring_messages import Action, PassToken, SendIncrement
from viewkeeper.protocols.tokens import (
    Entry,
    Increment,
    LocalData,
    Token,
    require_linear,
    sources_of,
    view_change,
    visited,
    without_nothing,
)
from viewkeeper.timeline import CutVector
from viewkeeper.views.definition import RelationName, ViewDefinition


class Ring(RingProtocol):
    """Puts the machines of a basic ring together."""

    name = "ring"
    asks = "rows by key where the token is: n visits for each turn"
    paper = "Rings, section 4.2"

    @staticmethod
    def system(
        definition: ViewDefinition,
        extent: Any,
        contents: Mapping[RelationName, Any],
        *,
        one_at_a_time: bool = False,
    ) -> RingSystem:
        """Nodes with their initial contents; the token starts on its way to the first of them."""
        require_linear(Ring.name, definition, one_term=True)
        ring = sources_of(definition.terms[0])
        nodes = {
            source: RingNode(definition, source, contents, one_at_a_time=one_at_a_time)
            for source in ring
        }
        token = Token.empty(0, ring, CutVector.start(ring))
        return RingSystem(Ring.name, nodes, RingWarehouse(), (PassToken(ring[0], token),))


class RingNode(DataNode):
    """A node of the ring: the token comes round by itself, and goes on to the next one."""

    def __init__(
        self,
        definition: ViewDefinition,
        source: str,
        contents: Mapping[RelationName, Any],
        *,
        one_at_a_time: bool = False,
    ) -> None:
        super().__init__(LocalData(definition, source, contents), one_at_a_time=one_at_a_time)
        self.definition = definition

    def _token_arrived(self, token: Token) -> Iterator[Action]:
        taken = self._taken()
        left, finished = visited(token, self.data, taken)
        self.data.advance(taken)
        yield from self._passed_on(without_nothing(left), finished)

    def _passed_on(self, token: Token, finished: Entry | None) -> Iterator[Action]:
        """The node's own entry is home: it gets the token's next number. The token goes on."""
        source = self.data.source
        if finished is not None:
            token = replace(token, number=token.number + 1)
            assembly = self.data.assemblies[token.term]
            change = view_change(self.definition, assembly, finished)
            yield SendIncrement(
                Increment(token.term, token.number, source, finished.upto, change, finished.cut)
            )
        following = token.ring[(token.ring.index(source) + 1) % len(token.ring)]
        yield PassToken(following, token)


class RingWarehouse(NumberedIncrements):
    """The warehouse: it installs increments in the order of their numbers."""

    first_number = 1

    def __init__(self) -> None:
        super().__init__()
        self._next = self.first_number

    def _due(self) -> Iterator[Action]:
        while (increment := self._early.pop((0, self._next), None)) is not None:
            self._next += 1
            yield InstallChange(increment.change, increment.cut, ())
