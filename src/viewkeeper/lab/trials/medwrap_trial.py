"""Trials of MEDWRAP and its rivals, on sources with several relations; all on the same histories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.lab.trials.asking_trial import asking_lines
from viewkeeper.lab.trials.trial import Trial, Wish, settings_of
from viewkeeper.protocols.medwrap_messages import Detection
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.simulator.kernel.journal import Journal
from viewkeeper.simulator.kernel.scheduling import SeededScheduler, run_to_end
from viewkeeper.simulator.medwrap.run import (
    RELATIONS_PER_SOURCE_MAX,
    MedwrapOptions,
    medwrap_scenario,
    simulated_medwrap,
)
from viewkeeper.simulator.run import Outcome, judged
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.simulator.world import World
from viewkeeper.views.level import Level

MEDIATED = ("medwrap", "mre")
# A source has up to three relations, and the checker evaluates the join of all of them.
SOURCES_MAX = 5
BATCH = 3

VARIANTS: dict[str, dict[str, Any]] = {
    "nested": {"nested": True},
    "batched": {"batch_max": BATCH},
    "snapshots": {"snapshots": True},
    "queue-order": {"detection": Detection.QUEUE_ORDER},
}


@dataclass(frozen=True)
class MultiRelationTrial(Trial):
    """Sources with one to three relations each; how many depends on the seed."""

    def scenario(self, seed: int) -> Scenario:
        size = self.size
        return medwrap_scenario(seed, size.transactions, size.shape, size.sources)

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {"relations": None}

    def measures(self, outcome: Outcome) -> dict[str, Any]:
        return {"relations": len(self.scenario(outcome.seed).initial)}


@dataclass(frozen=True)
class MedwrapTrial(MultiRelationTrial):
    """Wrappers and a mediator."""

    options: MedwrapOptions

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def level(self) -> Level:
        return self.options.level

    def outcome(self, seed: int, journal: Journal | None = None) -> Outcome:
        return simulated_medwrap(
            self.options,
            seed,
            self.scenario(seed),
            self.network,
            search=self.wish.search,
            journal=journal,
        )

    def measures(self, outcome: Outcome) -> dict[str, Any]:
        counted = ("relational_conflicts", "source_conflicts")
        return super().measures(outcome) | {name: outcome.messages[name] for name in counted}

    def lines(self, outcome: Outcome, measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        sent = outcome.messages
        yield "relations", f"{measures['relations']} in all"
        told = (
            f"{sent['notifications']} notifications, {sent['reports']} reports, "
            f"{sent['queries']} queries to wrappers"
        )
        yield "messages", told
        told = (
            f"{sent['local_questions']} local, {sent['global_questions']} global, "
            f"{sent['compensating_questions']} compensating"
        )
        yield "questions", told
        yield (
            "conflicts",
            f"{measures['relational_conflicts']} relational, {measures['source_conflicts']} source",
        )


@dataclass(frozen=True)
class SimplisticTrial(MultiRelationTrial):
    """SWEEP over relations, on the histories on which MEDWRAP runs."""

    @property
    def name(self) -> str:
        return Simplistic.name

    @property
    def level(self) -> Level:
        return Simplistic.level

    def outcome(self, seed: int, journal: Journal | None = None) -> Outcome:
        scenario = self.scenario(seed)
        world = World(scenario, Simplistic, self.network, journal=journal)
        run_to_end(world, SeededScheduler(seed))
        return judged(Simplistic, seed, scenario, world, search=self.wish.search)

    def lines(self, outcome: Outcome, measures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield "relations", f"{measures['relations']} in all"
        yield from asking_lines(outcome)


def multi_relation_trial(name: str, wish: Wish) -> MultiRelationTrial:
    """Raises UsageError on what this form of a wrapper can not do."""
    if wish.size.sources > SOURCES_MAX:
        raise UsageError(
            "too-many-sources",
            f"{name} runs over at most {SOURCES_MAX} sources in the lab",
            detail=f"each has up to {RELATIONS_PER_SOURCE_MAX} relations; asked for: "
            f"{wish.size.sources} sources",
            hint=f"lower --sources to {SOURCES_MAX}",
        )
    if name == Simplistic.name:
        settings_of(name, wish.variants, {})
        return SimplisticTrial(wish)
    options = MedwrapOptions(stores=name == "mre", **settings_of(name, wish.variants, VARIANTS))
    network = wish.network
    if options.detection is Detection.QUEUE_ORDER and (network.inversions or not network.fifo):
        # Not even with --beyond-assumptions: there would be no order to read.
        raise UsageError(
            "assumption-broken",
            f"{name} finds conflicts by queue order only where channels keep order",
            hint="leave out --no-fifo and --inversions, or --variant queue-order",
        )
    return MedwrapTrial(wish, options)
