"""Rings for views of several terms (UNION ALL): one token per term, changes visible in all at once.

Paper: Rings (2002), section 5; the protocol itself is only sketched there. Level: strong, complete when
one update is put in at a time. Assumes: reliable channels, in no particular order.

A source may take part in several terms. If its change became visible in one of them earlier than in
another, a reader would see a state that never was. So a node puts its changes in only when the tokens
of *all* its terms are with it at the same time, and the warehouse installs the increments of one change
together. Because a token is at one place at a time, any two changes that share a term have the same
order in every term they share: the warehouse never has to choose, and never waits in a circle.

A node that waits for tokens keeps those it has. Two nodes could then wait for each other for ever (the
paper does not say how that is avoided): so a node keeps a token only if it already has those of all its
terms with lower numbers, and lets it pass otherwise. The node with the highest token that is kept waits
only for tokens that nobody keeps; those go round and reach it.

| here | section 5 |
|---|---|
| `TermsNode._kept` | the tokens that wait at x_i until all of them are there |
| `TermsWarehouse._due` | increments in each ring's order, those of one update at the same time |
| `Increment.source`, ``upto`` | which update of which x_i an increment is due to |

Where we differ: increments are sent even when they are empty, since the warehouse must learn that
nothing is missing from a change any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.protocols.messages import InstallChange
from viewkeeper.protocols.ring import RingNode
from viewkeeper.protocols.ring_machines import NumberedIncrements, RingProtocol, RingSystem
from viewkeeper.protocols.ring_messages import Action, PassToken
from viewkeeper.protocols.tokens import Increment, Token, require_linear, sources_of, visited
from viewkeeper.timeline import CutVector, Transaction
from viewkeeper.views.definition import RelationName, ViewDefinition


class RingTerms(RingProtocol):
    """Puts the machines of a ring per term together."""

    name = "ring-terms"
    asks = "rows by key where the tokens are: one ring for each term"
    paper = "Rings, section 5"

    @staticmethod
    def system(
        definition: ViewDefinition,
        extent: Any,
        contents: Mapping[RelationName, Any],
        *,
        one_at_a_time: bool = False,
    ) -> RingSystem:
        """Nodes with their initial contents; each term's token starts towards its first source."""
        require_linear(RingTerms.name, definition, one_term=False)
        nothing = extent.where(FALSE)
        nodes = {
            source: TermsNode(definition, source, contents, one_at_a_time=one_at_a_time)
            for source in definition.sources
        }
        rings = [sources_of(term) for term in definition.terms]
        tokens = tuple(
            PassToken(ring[0], Token.empty(term, ring, CutVector.start(ring)))
            for term, ring in enumerate(rings)
        )
        return RingSystem(RingTerms.name, nodes, TermsWarehouse(definition, nothing), tokens)


class TermsNode(RingNode):
    """A node with a place in the ring of every term that reads it."""

    def __init__(
        self,
        definition: ViewDefinition,
        source: str,
        contents: Mapping[RelationName, Any],
        *,
        one_at_a_time: bool = False,
    ) -> None:
        super().__init__(definition, source, contents, one_at_a_time=one_at_a_time)
        self._kept: dict[int, Token] = {}

    @property
    def is_idle(self) -> bool:
        return super().is_idle and not self._kept

    @property
    def kept(self) -> tuple[Token, ...]:
        return tuple(self._kept.values())

    def _token_arrived(self, token: Token) -> Iterator[Action]:
        terms = sorted(self.data.assemblies)
        lower = [term for term in terms if term < token.term]
        if not self._queue or not all(term in self._kept for term in lower):
            yield from self._visited(token, ())
            return
        self._kept[token.term] = token
        if len(self._kept) == len(terms):
            taken = self._taken()
            # All tokens are here: between the first and the last of these visits nobody else can
            # put anything into any of these terms, so the change has one place in all orders.
            for term in terms:
                yield from self._visited(self._kept.pop(term), taken)
            self.data.advance(taken)

    def _visited(self, token: Token, taken: tuple[Transaction, ...]) -> Iterator[Action]:
        left, finished = visited(token, self.data, taken)
        yield from self._passed_on(left, finished)


class TermsWarehouse(NumberedIncrements):
    """Installs the increments of one change in all its terms at once, each term in its order."""

    def __init__(self, definition: ViewDefinition, nothing: Any) -> None:
        super().__init__()
        self.nothing = nothing
        self._terms_of = {
            source: tuple(i for i, t in enumerate(definition.terms) if source in sources_of(t))
            for source in definition.sources
        }
        self._next = dict.fromkeys(range(len(definition.terms)), 1)
        self._cut = CutVector.start(definition.sources)

    def _due(self) -> Iterator[Action]:
        """Install every change whose increments are next in all of its terms."""
        while (change := self._next_change()) is not None:
            total = self.nothing
            for increment in change:
                total = total + increment.change
                del self._early[increment.term, increment.number]
                self._next[increment.term] += 1
            source, upto = change[0].source, change[0].upto
            self._cut = self._cut.advanced(source, upto)
            yield InstallChange(total, self._cut, ())

    def _next_change(self) -> tuple[Increment, ...] | None:
        for term, number in self._next.items():
            head = self._early.get((term, number))
            if head is None:
                continue
            parts = [self._early.get((t, self._next[t])) for t in self._terms_of[head.source]]
            present = tuple(part for part in parts if part is not None)
            same = {(part.source, part.upto) for part in present}
            if len(present) == len(parts) and same == {(head.source, head.upto)}:
                return present
        return None
