"""Rings: how long an update takes, and what is sent while nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from viewkeeper.lab.comparisons.section import PAPER, Section, tell_numbers
from viewkeeper.protocols.quiescent_ring import QuiescentRing
from viewkeeper.protocols.ring import Ring
from viewkeeper.simulator.plots import Panel, Points, merged
from viewkeeper.simulator.rings.costs import RingCost, ring_costs
from viewkeeper.terminal import write_line

SOURCES = (2, 3, 4, 5, 6)
CASES = {"one": "one source updated", "all": "all sources updated at once"}
VISITS = " (visits)"

# Each line of a table or chart: its name, whose it is, and which of its figures.
_Line = tuple[str, str, Callable[[RingCost], float]]


def _worst(cost: RingCost) -> float:
    return cost.delays_worst


def _paper(cost: RingCost) -> float:
    return cost.paper_delays


def _visits(cost: RingCost) -> float:
    return cost.visits_worst


LATENCY: tuple[_Line, ...] = (
    (Ring.name, Ring.name, _worst),
    (Ring.name + PAPER, Ring.name, _paper),
    (QuiescentRing.name, QuiescentRing.name, _worst),
    (QuiescentRing.name + VISITS, QuiescentRing.name, _visits),
    (QuiescentRing.name + PAPER, QuiescentRing.name, _paper),
)


def _both(figure: Callable[[RingCost], float]) -> tuple[_Line, ...]:
    return tuple((name, name, figure) for name in (Ring.name, QuiescentRing.name))


MESSAGES = _both(lambda cost: cost.messages_mean)
IDLE = _both(lambda cost: cost.idle_messages_per_delay)


@dataclass(frozen=True)
class RingSection(Section):
    """Every message takes one delay, processing takes none."""

    name = "rings"
    costs: tuple[RingCost, ...]

    @classmethod
    def measured(cls) -> Self:
        return cls(tuple(ring_costs(SOURCES)))

    @property
    def is_good(self) -> bool:
        """The quiescent ring is silent when nothing happens."""
        quiescent = [cost for cost in self.costs if cost.protocol == QuiescentRing.name]
        return all(cost.idle_messages_per_delay == 0 for cost in quiescent)

    def tell(self) -> None:
        write_line("Rings: every message takes one delay, processing takes none.", "dim")
        for case, words in CASES.items():
            title = f"Message delays until an update is in the view, at worst; {words}"
            self._tell(title, case, LATENCY)
        self._tell(f"Messages until then, in the mean; {CASES['one']}", "one", MESSAGES)
        self._tell("Messages in each delay when nothing happens", "one", IDLE)

    def _tell(self, title: str, case: str, lines: tuple[_Line, ...]) -> None:
        heads = [f"n={n}" for n in SOURCES]
        rows = [(name, [y for _, y in points]) for name, points in self._lines(case, lines).items()]
        tell_numbers(title, heads, rows)

    def _lines(self, case: str, lines: tuple[_Line, ...]) -> dict[str, Points]:
        return {
            name: tuple(
                (cost.sources, figure(cost))
                for cost in self.costs
                if cost.protocol == protocol and cost.case == case
            )
            for name, protocol, figure in lines
        }

    def document(self) -> dict[str, Any]:
        return {"costs": [cost.as_dict() for cost in self.costs]}

    def panels(self) -> list[Panel]:
        drawn = [
            (f"Rings: {CASES['one']}", "message delays, at worst", "one", LATENCY),
            (f"Rings: {CASES['all']}", "message delays, at worst", "all", LATENCY),
            (f"Rings: {CASES['one']}", "messages, in the mean", "one", MESSAGES),
            ("Rings: nothing happens", "messages in each delay", "one", IDLE),
        ]
        return [
            Panel(title, "sources", label, merged(self._lines(case, lines)))
            for title, label, case, lines in drawn
        ]
