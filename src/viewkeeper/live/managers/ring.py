"""Rings live: the machines of the papers, with the wrapper beside the warehouse as every data node.

Tokens move as they would between nodes, and are counted. What a node has where it is, it asks of its
source by key: its data "as the token last saw them" are the source's at the end of a piece of a job,
without those transactions of the piece that the node has not yet put in. Between pieces all is quiet:
the basic ring's token, which would go round for ever, stays where it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Schema
from viewkeeper.errors import invariant
from viewkeeper.live.jobs import Job
from viewkeeper.live.managers.buffering import BufferedManager, ManagerInputs, Piece
from viewkeeper.live.managers.protocol import move_relations
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.protocols.compensation import changes_of
from viewkeeper.protocols.messages import InstallChange, Part
from viewkeeper.protocols.ring_machines import RingSystem
from viewkeeper.protocols.ring_messages import (
    WAREHOUSE,
    Action,
    Event,
    IncrementArrived,
    PassToken,
    RequestToken,
    SendIncrement,
    TokenArrived,
    TokenRequested,
    TransactionCommitted,
)
from viewkeeper.protocols.tokens import LocalData
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.level import Level

MakeSystem = Callable[[ViewDefinition, Any, Mapping[RelationName, Any]], RingSystem]


class RingManager(BufferedManager):
    """One view and all nodes of its ring."""

    level = Level.STRONG

    def __init__(self, inputs: ManagerInputs, make: MakeSystem) -> None:
        super().__init__(inputs)
        self._make = make
        self._system: RingSystem | None = None
        self._on_the_way: deque[tuple[str, Event]] = deque()

    def changes(self, job: Job, questions: Questions) -> Iterator[tuple[Any, int]]:
        last = job.batch[-1].number
        for piece in self.pieces(job, questions):
            for change in self._installed(piece):
                yield change, last

    def _installed(self, piece: Piece) -> Iterator[Any]:
        if self._system is None:
            self._system = self._begun(piece)
        system = self._system
        # The warehouse of a ring of terms keeps an empty relation, to add to.
        move_relations(system.warehouse, piece.staging)
        for node in system.nodes.values():
            node.data.begin(piece)  # type: ignore[attr-defined]
        for transaction in piece.transactions:
            node = system.nodes[transaction.source]
            yield from self._sent(node.step(TransactionCommitted(transaction)))
        while not system.is_settled(event for _, event in self._on_the_way):
            to, event = self._on_the_way.popleft()
            machine = system.nodes[to] if to else system.warehouse
            yield from self._sent(machine.step(event))

    def _begun(self, piece: Piece) -> RingSystem:
        system = self._make(self.definition, piece.staging.of_bag(Bag(self.definition.schema)), {})
        for source, node in system.nodes.items():
            node.data = SourceData(self.definition, source)
        invariant(not list(self._sent(system.tokens)), "a ring begins with tokens alone")
        return system

    def _sent(self, actions: Iterable[Action]) -> Iterator[Any]:
        """Put messages on their way; what is to be installed comes out."""
        for action in actions:
            match action:
                case PassToken(to, token):
                    self.counts.tokens += 1
                    entries = [entry for entry in token.entries if entry is not None]
                    self.counts.rows += sum(entry.rows.lines for entry in entries)
                    self._on_the_way.append((to, TokenArrived(token)))
                case SendIncrement(increment):
                    self.counts.increments += 1
                    self._on_the_way.append((WAREHOUSE, IncrementArrived(increment)))
                case RequestToken(source, upto):
                    self.counts.requests += 1
                    self._on_the_way.append((WAREHOUSE, TokenRequested(source, upto)))
                case InstallChange(change):
                    yield change
                case _:
                    invariant(False, f"a ring wants what can't be done live: {action}")


class SourceData(LocalData):
    """A node's data where they are: asked for by key when a token needs them.

    ``seen`` holds, by relation, what must be added to the source's own contents at the end of the
    piece to get them as the token last saw them; None where nothing must.
    """

    def __init__(self, definition: ViewDefinition, source: str) -> None:
        super().__init__(definition, source, {})
        self._relations = tuple(name for name in definition.relations if name.source == source)

    def begin(self, piece: Piece) -> None:
        """The token has seen nothing of this piece yet."""
        self._end = piece.end
        mine = [t for t in piece.transactions if t.source == self.source]
        changes = changes_of(mine, sign=-1)
        self.seen = {name: changes(name) for name in self._relations}

    def _nothing(self, term: int) -> Any:
        aliases = self.aliases(term)
        occurrences = self.assemblies[term].term.occurrences
        fields = (f for o in occurrences if o.alias in aliases for f in o.qualified_schema)
        return self._end.questions.staging.of_bag(Bag(Schema(tuple(fields))))

    def _extended(
        self,
        term: int,
        rows: Any,
        covers: frozenset[str],
        aliases: Iterable[str],
        contents: Mapping[RelationName, Any],
    ) -> tuple[Any, frozenset[str]]:
        assembly, staging = self.assemblies[term], self._end.questions.staging
        for alias in aliases:
            product: Any = self._end.product(Part(term, (alias,), rows, covers))
            correction = contents[assembly.term.occurrence(alias).name]
            if correction is not None:
                product = product + assembly.extended(rows, covers, alias, correction)
            rows, covers = staging.taken(product.consolidated()), covers | {alias}
        return rows, covers
