"""Nodes, the channels between them, and what can happen next.

A world does nothing by itself. `World.choices` lists what could happen, `World.take` makes one of them happen; who
chooses (a seed, a search of every order, a schedule that was written down) is outside. A node is a pure machine
with a name: something arrives, or it acts by itself, and messages follow. The world's table, `World.routes`, says for
each type of message who gets it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from viewkeeper.errors import invariant
from viewkeeper.simulator.kernel.journal import Journal, Told

# The node's name of the warehouse: no source can have it.
WAREHOUSE = ""


@dataclass(frozen=True)
class Network:
    """How messages travel. ``inversions``: a committed transaction becomes visible to queries later
    than it is announced, and not in order, as in PostgreSQL."""

    fifo: bool = True
    inversions: bool = False


# -- what can happen --------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Act:
    """A node does something by itself. ``odds`` beside one message's; None: as the phase of the run has it."""

    node: str
    odds: ClassVar[float | None] = None


@dataclass(frozen=True, order=True)
class Commit(Act):
    """A source commits its next transaction, and announces it."""


@dataclass(frozen=True, order=True)
class Reveal(Act):
    """A committed transaction becomes visible to queries (only with inversions a step by itself)."""

    number: int
    odds = 0.5


@dataclass(frozen=True, order=True)
class Deliver:
    """A message of a channel arrives; without FIFO it need not be the oldest."""

    sender: str
    to: str
    index: int = 0


Choice = Act | Deliver
Channel = tuple[str, str]


# -- nodes and messages -----------------------------------------------------------------------------


class Node:
    """A process of a world: its machine decides what follows from what arrives."""

    # Whether an answer follows at once from whatever arrives: the journal then has one entry for both.
    answers_at_once: ClassVar[bool] = False

    @property
    def choices(self) -> Sequence[Act]:
        """What it could do by itself, in a fixed order."""
        return ()

    def act(self, act: Act) -> Iterable[Any]:
        """Do it; the messages that follow."""
        invariant(False, f"{act} is not one of the choices")
        return ()

    def taken_in(self, sender: str, message: Any) -> Iterable[Any]:
        """What the machine gets now: the message, or what had waited for it, or nothing yet."""
        return (message,)

    def step(self, sender: str, event: Any) -> Iterable[Any]:
        """Take one event in; the messages that follow, in order."""
        invariant(False, f"{event} is not for this node")
        return ()

    @property
    def waits_for(self) -> str | None:
        """In words, what it still needs; None when it is at rest."""
        return None


class Counts(Counter[str]):
    """What was counted: no part of what a world is."""


@dataclass(frozen=True)
class Route:
    """Where a message goes, given its sender; as what it arrives there; what is counted of it."""

    to: Callable[[str, Any], str]
    arrives_as: Callable[[Any], Any] = lambda message: message
    counted: Callable[[Any], Mapping[str, int]] = lambda message: {}


class World(ABC):
    """Everything there is in a run."""

    # By the type of a message. What has no route is carried out by the world itself.
    routes: ClassVar[Mapping[type, Route]]
    counted: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        nodes: Mapping[str, Node],
        channels: Mapping[str, Sequence[Channel]],
        network: Network,
        journal: Journal | None = None,
    ) -> None:
        """``channels``: listed beside a node, in the order in which `choices` has them."""
        self.nodes = dict(nodes)
        self.network = network
        self.journal = journal
        self.counters = Counts(dict.fromkeys(self.counted, 0))
        self.channels: dict[Channel, list[Any]] = {
            channel: [] for beside in channels.values() for channel in beside
        }
        self._beside = dict(channels)

    # -- what could happen, and making it happen ---------------------------------------------------

    def choices(self) -> list[Choice]:
        """Everything that could happen next, in a fixed order; empty when the run is over."""
        found: list[Choice] = []
        for name, node in self.nodes.items():
            found += node.choices
            for sender, to in self._beside.get(name, ()):
                on_the_way = len(self.channels[sender, to])
                places = min(1, on_the_way) if self.network.fifo else on_the_way
                found += [Deliver(sender, to, place) for place in range(places)]
        return found

    def take(self, choice: Choice) -> None:
        """Make it happen."""
        match choice:
            case Deliver(sender, to, index):
                node = self.nodes[to]
                for event in node.taken_in(sender, self.channels[sender, to].pop(index)):
                    self.arrived(sender, to, event)
                    self.carry_out_all(to, node.step(sender, event))
            case Act(name):
                messages = tuple(self.nodes[name].act(choice))
                if self.journal is not None:
                    self.journal.happened(name, self.told(name, choice))
                self.carry_out_all(name, messages)

    def arrived(self, sender: str, to: str, event: Any) -> None:
        """A node takes something in."""
        if self.journal is not None and not self.nodes[to].answers_at_once:
            self.journal.arrived(to, sender, self.told(sender, event))

    def carry_out_all(self, sender: str, messages: Iterable[Any]) -> None:
        """Send them, or do what they say, one after the other."""
        for message in messages:
            route = self.routes.get(type(message))
            if route is None:
                self.carry_out(sender, message)
                continue
            self.counters.update(route.counted(message))
            to, arriving = route.to(sender, message), route.arrives_as(message)
            self.channels[sender, to].append(arriving)
            self.sent(sender, to, arriving)

    def sent(self, sender: str, to: str, message: Any) -> None:
        """A message leaves."""
        if self.journal is not None:
            self.journal.sent(sender, to, self.told(sender, message))

    @abstractmethod
    def carry_out(self, sender: str, action: Any) -> None:
        """Do what is no message."""

    @abstractmethod
    def told(self, sender: str, thing: Any) -> Told | None:
        """A message, an event or an act in words; None for what is not worth an entry."""

    # -- at the end --------------------------------------------------------------------------------

    def require_finished(self) -> None:
        """Nothing can happen any more: then nothing may be waiting either (liveness)."""
        invariant(not self.choices(), "the run is not over")
        waiting = {n or "the warehouse": node.waits_for for n, node in self.nodes.items()}
        found = [f"{name} for {what}" for name, what in waiting.items() if what is not None]
        invariant(not found, "somebody waits for ever: nothing can happen", detail="; ".join(found))

    @property
    @abstractmethod
    def sources(self) -> Mapping[str, Node]:
        """The nodes that commit scripts."""

    @property
    def identity(self) -> Any:
        """What two worlds must have in common to be one; else everything but what was counted."""
        return None
