"""The world of view managers that ask: sources, one protocol at the warehouse, questions and answers between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, cast

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Column, Comparison
from viewkeeper.protocols.inbox import (
    AnswerMessage,
    Inbox,
    Message,
    SettledMessage,
    TransactionMessage,
)
from viewkeeper.protocols.messages import (
    Action,
    AnswerArrived,
    AskSource,
    Event,
    KeyedPart,
    Part,
    Protocol,
    TransactionArrived,
)
from viewkeeper.simulator.kernel.journal import Journal, Told, rows_text
from viewkeeper.simulator.kernel.world import WAREHOUSE, Act, Network, Node, Route
from viewkeeper.simulator.one_view import OneViewWorld
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.source import SimulatedSource
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import ViewDefinition

MakeProtocol = Callable[[ViewDefinition, Any], Protocol]


class Warehouse(Node):
    """A view manager; what arrives early waits in the inbox of its source."""

    def __init__(self, protocol: Protocol, sources: Iterable[str]) -> None:
        self.protocol = protocol
        self.inboxes = {name: Inbox(name) for name in sources}
        # The source of each transaction that the protocol got, in the order of delivery.
        self.delivered: list[str] = []

    def taken_in(self, sender: str, message: Message) -> Iterable[Event]:
        return self.inboxes[sender].receive(message)

    def step(self, sender: str, event: Event) -> tuple[Action, ...]:
        if isinstance(event, TransactionArrived):
            self.delivered.append(sender)
        return self.protocol.step(event)

    @property
    def waits_for(self) -> str | None:
        holding = [name for name, inbox in self.inboxes.items() if inbox.holds]
        if holding:
            return f"what messages from {holding} need"
        return None if self.protocol.is_idle else f"{self.protocol.name} to be idle"


def _to_warehouse(sender: str, message: Message) -> str:
    return WAREHOUSE


def _asked(question: AskSource) -> Mapping[str, int]:
    given = (part.given for part in question.parts if isinstance(part.given, Bag))
    rows = sum(rows.total for rows in given)
    return {"queries": 1, "parts": len(question.parts), "rows_asked": rows}


def _answered(message: AnswerMessage) -> Mapping[str, int]:
    rows = (rows.total for rows in message.answer.answers if isinstance(rows, Bag))
    return {"answers": 1, "rows": sum(rows)}


class World(OneViewWorld):
    """Everything there is in a run of a protocol that asks.

    ``rows_asked`` counts the rows that questions carry, ``rows`` those in answers.
    """

    counted = ("notifications", "queries", "answers", "rows", "rows_asked", "parts")
    routes: ClassVar = {
        TransactionMessage: Route(_to_warehouse, counted=lambda message: {"notifications": 1}),
        SettledMessage: Route(_to_warehouse),
        AnswerMessage: Route(_to_warehouse, counted=_answered),
        AskSource: Route(lambda sender, question: question.source, counted=_asked),
    }

    def __init__(
        self,
        scenario: Scenario,
        make_protocol: MakeProtocol,
        network: Network = Network(),  # noqa: B008  (immutable)
        embody: Callable[[Bag], Any] = lambda bag: bag,
        journal: Journal | None = None,
    ) -> None:
        definition, extent = scenario.definition, embody(scenario.extent)
        assemblies = tuple(Assembly(term) for term in definition.all_terms)
        self.assemblies = assemblies
        nodes: dict[str, Node] = {
            name: SimulatedSource(
                name,
                scenario.initial,
                script,
                embody,
                inversions=network.inversions,
                assemblies=assemblies,
            )
            for name, script in sorted(scenario.scripts.items())
        }
        channels = {name: ((WAREHOUSE, name), (name, WAREHOUSE)) for name in nodes}
        nodes[WAREHOUSE] = Warehouse(make_protocol(definition, extent), channels)
        super().__init__(nodes, channels, network, extent, journal)
        # What was asked, for the journal: an answer is told with the question's parts.
        self._asked: dict[int, AskSource] = {}

    @property
    def warehouse(self) -> Warehouse:
        return cast(Warehouse, self.nodes[WAREHOUSE])

    @property
    def protocol(self) -> Protocol:
        return self.warehouse.protocol

    @property
    def delivered(self) -> list[str]:
        return self.warehouse.delivered

    # -- in words ----------------------------------------------------------------------------------

    def told(self, sender: str, thing: Any) -> Told | None:
        match thing:
            case Act():
                return self.told_act(thing)
            case TransactionArrived(transaction):
                return Told("", f"#{transaction.number}")
            case AnswerArrived(question):
                return Told("", f"!{question}")
            case AskSource(question, _, parts):
                self._asked[question] = thing
                return Told("ask", f"?{question}", ", ".join(map(self._part_text, parts)))
            case AnswerMessage(answer):
                return self._told_answer(answer)
        return None

    def _told_answer(self, answer: AnswerArrived) -> Told:
        parts = self._asked[answer.question].parts
        rows = ", ".join(
            self._partial_text(part.term, rows, part.covers | set(part.asks))
            for part, rows in zip(parts, answer.answers, strict=True)
        )
        text = f"{rows} (reflects {answer.reflects})"
        return Told("answer", f"!{answer.question}", text, answers=f"?{answer.question}")

    def _part_text(self, part: Part | KeyedPart) -> str:
        asks = " ⊗ ".join(part.asks)
        if isinstance(part, KeyedPart) and part.keys is not None:
            return f"{rows_text(part.keys)} ⋉ {asks}"
        if part.given is None:
            return asks
        return f"{self._partial_text(part.term, part.given, part.covers)} ⊗ {asks}"

    def _partial_text(self, term: int, rows: Any, covers: frozenset[str]) -> str:
        """A partial as the papers write it: in the view's order, joined columns once."""
        # A wrapper may have dropped columns that are no longer needed.
        distinct = _distinct_columns(self.assemblies[term], covers)
        return rows_text(rows.only([name for name in distinct if name in rows.schema]))


def _distinct_columns(assembly: Assembly, covers: frozenset[str]) -> tuple[str, ...]:
    """The columns of a partial, without those that a join made equal to an earlier one."""
    term = assembly.term
    names = [
        name
        for occurrence in term.occurrences
        if occurrence.alias in covers
        for name in occurrence.qualified_schema.names
    ]
    for predicate in term.predicates:
        match predicate:
            case Comparison("=", Column(left), Column(right)) if left in names and right in names:
                if left != right:
                    names.remove(max(left, right, key=names.index))
            case _:
                pass
    return tuple(names)
