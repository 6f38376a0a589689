"""Trials of rings: nodes at the sources, a token that visits them, channels without any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.lab.trials.trial import Trial, Wish, settings_of
from viewkeeper.protocols.quiescent_ring import QuiescentRing, Refresh
from viewkeeper.protocols.ring_terms import RingTerms
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.world import Network
from viewkeeper.simulator.rings.costs import ring_latencies
from viewkeeper.simulator.rings.run import RingOptions, simulated_ring
from viewkeeper.simulator.run import Outcome
from viewkeeper.views.level import Level

# How busy the sources are while latencies are counted: together, updates in each message delay.
COMMITS_PER_DELAY = 0.25
DEMANDS = 4

_ALL: dict[str, dict[str, Any]] = {"one-at-a-time": {"one_at_a_time": True}}
_QUIESCENT: dict[str, dict[str, Any]] = {
    "periodic": {"refresh": Refresh.PERIODIC, "ticks": DEMANDS},
    "on-query": {"refresh": Refresh.ON_QUERY, "queries": DEMANDS},
}


def ring_variants(name: str) -> dict[str, dict[str, Any]]:
    """The variants of a ring by name, each with what it sets."""
    return _ALL | _QUIESCENT if name == QuiescentRing.name else _ALL


@dataclass(frozen=True)
class RingTrial(Trial):
    """A ring; its network never keeps order, and no source is asked anything."""

    options: RingOptions

    @property
    def name(self) -> str:
        return self.options.protocol

    @property
    def level(self) -> Level:
        return self.options.level

    def outcome(self, seed: int, journal: Journal | None = None) -> Outcome:
        search = self.wish.search
        return simulated_ring(self.options, seed, self.size, search=search, journal=journal)

    def measures(self, outcome: Outcome) -> dict[str, Any]:
        """Latencies come from a second run with the same seed, in which every message takes one delay.

        None where the warehouse decides when to refresh (its period would be told), and for several
        terms (that run has one).
        """
        latency = None
        timed = self.options.refresh is Refresh.ON_UPDATE and self.name != RingTerms.name
        if timed and self.size.transactions:
            delays = ring_latencies(
                self.options,
                outcome.seed,
                self.size.sources,
                self.size.transactions,
                COMMITS_PER_DELAY,
            )
            latency = {"mean_delays": delays.mean, "worst_delays": max(delays.delays)}
        return {"latency": latency}

    def lines(self, outcome: Outcome, measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        sent = outcome.messages
        told = (
            f"{sent['tokens']} tokens, {sent['increments']} increments, "
            f"{sent['requests']} requests, with {sent['rows']} rows"
        )
        yield "messages", told
        latency = measures["latency"]
        if latency is not None:
            mean, worst = latency["mean_delays"], latency["worst_delays"]
            yield "latency", f"{mean:.3g} message delays in the mean, {worst} at worst"


def ring_trial(name: str, wish: Wish) -> RingTrial:
    """Raises UsageError on what means nothing in a ring."""
    if wish.network.inversions:
        raise UsageError(
            "does-not-apply",
            f"--inversions means nothing for {name}",
            detail="inversions are about queries, and in a ring nobody asks a source",
        )
    options = RingOptions(name, **settings_of(name, wish.variants, ring_variants(name)))
    return RingTrial(replace(wish, network=Network(fifo=False)), options)
