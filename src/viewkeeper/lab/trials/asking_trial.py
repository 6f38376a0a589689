"""Trials of protocols that ask sources questions: all that the live pipeline knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.lab.trials.trial import Trial, Wish, settings_of
from viewkeeper.protocols.messages import Assumptions, Protocol
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.run import Outcome, simulated
from viewkeeper.views.level import Level


@dataclass(frozen=True)
class AskingTrial(Trial):
    """A view manager at the warehouse, and sources that answer it."""

    protocol: type[Protocol]

    @property
    def name(self) -> str:
        return self.protocol.name

    @property
    def level(self) -> Level:
        return self.protocol.level

    def outcome(self, seed: int, journal: Journal | None = None) -> Outcome:
        search = self.wish.search
        return simulated(
            self.protocol, seed, self.size, self.network, search=search, journal=journal
        )

    def lines(self, outcome: Outcome, measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        return asking_lines(outcome)


def asking_lines(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """What travelled between the sources and the one who asks them."""
    messages = outcome.messages
    told = (
        f"{messages['notifications']} notifications, {messages['queries']} queries, "
        f"{messages['answers']} answers with {messages['rows']} rows"
    )
    yield "messages", told
    yield "queries", f"{outcome.queries_per_transaction:g} per transaction"


def asking_trial(protocol: type[Protocol], wish: Wish) -> AskingTrial:
    """Raises UsageError on a network that breaks an assumption, unless one insists."""
    settings_of(protocol.name, wish.variants, {})
    if not wish.beyond_assumptions:
        _require_fitting(protocol, wish.network)
    size = replace(wish.size, keyed=protocol.assumes.keys, one_source=protocol.assumes.one_source)
    return AskingTrial(replace(wish, size=size), protocol)


def _require_fitting(protocol: type[Protocol], network: Network) -> None:
    assumes: Assumptions = protocol.assumes
    broken = [
        flag
        for flag, breaks in (
            ("--no-fifo", assumes.fifo and not network.fifo),
            ("--inversions", assumes.no_inversions and network.inversions),
        )
        if breaks
    ]
    if broken:
        raise UsageError(
            "assumption-broken",
            f"{protocol.name} promises nothing with {' and '.join(broken)}",
            detail=f"it assumes {assumes}",
            hint="add --beyond-assumptions to see what happens, or choose sweep, which assumes nothing",
        )
