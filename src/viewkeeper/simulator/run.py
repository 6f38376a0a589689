"""One simulated run: a protocol, a seed, a verdict."""

from __future__ import annotations

import hashlib
import typing
from dataclasses import dataclass
from typing import Any

from viewkeeper.consistency import Verdict, check, check_order
from viewkeeper.consistency.histories import ViewStates
from viewkeeper.consistency.violation import as_document
from viewkeeper.protocols.messages import Protocol
from viewkeeper.simulator.generator import Size, random_scenario
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.one_view import OneViewWorld
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class Outcome:
    """What a run was, what it cost, and which level the checker found."""

    protocol: str
    seed: int
    sources: int
    transactions: int
    verdict: Verdict
    expected_level: Level
    states: int
    messages: dict[str, int]
    # How many of the transactions changed the view.
    changing: int
    # The verdict over the order of delivery alone, where the protocol promises to keep it.
    order: Verdict | None = None

    @property
    def is_good(self) -> bool:
        """Each verdict is at least the expected level, and every cut that was claimed holds."""
        return all(v.meets(self.expected_level) for v in (self.verdict, self.order) if v)

    @property
    def problem(self) -> str:
        """What to show of a run that is not good."""
        if self.order is None or not self.verdict.meets(self.expected_level):
            return self.verdict.problem
        return f"not in the order of delivery\n{self.order.problem}"

    @property
    def queries_per_transaction(self) -> float:
        return self.messages["queries"] / self.transactions if self.transactions else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "protocol": self.protocol,
            "seed": self.seed,
            "sources": self.sources,
            "transactions": self.transactions,
            "changing": self.changing,
            "level": str(self.verdict.level),
            "expected_level": str(self.expected_level),
            "claims_hold": self.verdict.claims_hold,
            "in_order": None if self.order is None else self.order.meets(self.expected_level),
            "states": self.states,
            "messages": self.messages,
            "queries_per_transaction": self.queries_per_transaction,
            "wrong_claim": as_document(self.verdict.wrong_claim),
            "violation": as_document(self.verdict.violation),
        }


def simulated(
    protocol: type[Protocol],
    seed: int,
    size: Size,
    network: Network = Network(),  # noqa: B008  (immutable)
    *,
    search: bool = False,
    journal: Journal | None = None,
) -> Outcome:
    """Run one seed to its end and judge it; ``search`` ignores the cuts that the protocol claims."""
    scenario = random_scenario(seed, size)
    world = World(scenario, protocol, network, journal=journal)
    run_to_end(world, SeededScheduler(seed))
    return judged(protocol, seed, scenario, world, search=search)


class Promising(typing.Protocol):
    """What is judged by its name and the level that it promises: a protocol, or options of one."""

    @property
    def name(self) -> str: ...

    @property
    def level(self) -> Level: ...


def judged(
    promising: Promising,
    seed: int,
    scenario: Scenario,
    world: OneViewWorld,
    *,
    search: bool = False,
) -> Outcome:
    """The verdict on a run that is over."""
    definitions, histories = [scenario.definition], scenario.histories
    states = [(state.to_bag(),) for state in world.states]
    claims = None if search else world.claims
    order = None
    if isinstance(world, World) and world.protocol.in_order:
        order = check_order(definitions, histories, world.delivered, states, claims)
    return Outcome(
        protocol=promising.name,
        seed=seed,
        sources=len(scenario.scripts),
        transactions=scenario.number_of_transactions,
        verdict=check(definitions, histories, states, claims),
        expected_level=promising.level,
        states=len(world.states),
        messages=dict(world.counters),
        changing=ViewStates(definitions, histories).number_changing(world.claims),
        order=order,
    )


def digest(protocol: type[Protocol], seed: int, size: Size, network: Network) -> str:
    """A short name for everything that happens in a run; equal runs have equal digests."""
    journal = Journal()
    simulated(protocol, seed, size, network, journal=journal)
    return hashlib.sha256(journal.transcript().encode()).hexdigest()[:16]
