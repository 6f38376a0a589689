"""Seeds with data and schema changes of several sources: strong by the checker, through every version.

`VIEWKEEPER_EVOLUTION_SEEDS=2000` runs them all; without it a part of them, for every day.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.errors import ViewkeeperError
from viewkeeper.evolution.changes import SchemaChanged
from viewkeeper.evolution.management import Management
from viewkeeper.evolution.map_va import MapVA
from viewkeeper.evolution.messages import UpdateArrived
from viewkeeper.evolution.query_engine import Answered, QueryEngine
from viewkeeper.simulator.evolution_checking import EvolutionVerdict, judged
from viewkeeper.simulator.evolution_generator import random_evolution
from viewkeeper.simulator.evolution_world import (
    EvolutionScheduler,
    EvolutionWorld,
    run_evolution_to_end,
)
from viewkeeper.timeline import Transaction

SEEDS = int(os.environ.get("VIEWKEEPER_EVOLUTION_SEEDS", "300"))
CHUNK = 100


def simulated(seed: int, make=Management) -> EvolutionWorld:
    # Every third seed lets transactions become visible late and out of order, as PostgreSQL does.
    world = EvolutionWorld(random_evolution(seed), make, inversions=seed % 3 == 0)
    run_evolution_to_end(world, EvolutionScheduler(seed))
    return world


def verdict(seed: int, make=Management) -> EvolutionVerdict:
    # Every fourth seed ignores the cuts that were claimed.
    return judged(simulated(seed, make), search=seed % 4 == 0)


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_seed_is_strong_through_all_versions(first):
    for seed in range(first, min(first + CHUNK, SEEDS)):
        found = verdict(seed)
        assert found.is_strong, f"seed {seed}: {found.problems[0]}"


def test_the_seeds_have_all_they_should_have():
    """Aborts, broken queries, all ways of adapting, all kinds of change, retired views, chains."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        world = simulated(seed)
        seen.update(world.counters.methods)
        seen["broken"] += world.counters.broken
        seen["retired"] += world.retired is not None
        for updates in world.included:
            changes = [u for u in updates if isinstance(u, SchemaChanged)]
            seen["several schema changes at once"] += len(changes) > 1
            seen["aborted data changes"] += len(updates) - len(changes) if changes else 0
        for version in world.management.versions.versions[1:]:
            seen[type(version.change.change).__name__] += 1
        seen["versions"] += len(world.management.versions.versions) > 3
    expected = (
        "map-va", "recompute", "kept", "broken", "retired", "several schema changes at once",
        "aborted data changes", "RenameAttribute", "RenameRelation", "DropAttribute",
        "DropRelation", "ChangeType", "Rewrite", "versions",
    )  # fmt: skip
    assert all(seen[word] >= 3 for word in expected), seen


def digest(seeds: int) -> str:
    texts = (
        f"{record.version.number} {record.cut} {record.extent}"
        for seed in range(seeds)
        for record in simulated(seed).records
    )
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def test_a_seed_means_the_same_under_another_hash_seed():
    program = "from simulation.test_evolution import digest; print(digest(20))"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": salt, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(found) == 1


# -- wrong variants: the checker must catch each ---------------------------------------------------


class WithEngine(Management):
    """A management with another query engine."""

    engine_type: type[QueryEngine] = QueryEngine

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.engine = self.engine_type(self.log)


class Uncorrected(QueryEngine):
    def corrected(self, read, rows, answer):
        return rows


class SkipsLocalCorrection(WithEngine):
    engine_type = Uncorrected


class Unmapped(QueryEngine):
    def mapped(self, names):
        return names if super().mapped(names) is not None else None


class ForgetsNameMapping(WithEngine):
    engine_type = Unmapped


class Believing(QueryEngine):
    """Takes every answer that is no error for a right one, as the paper does."""

    def rows_arrived(self, answer):
        asked = self._open.pop(answer.question)
        rows = answer.rows.renamed(asked.read.schema.names)
        return Answered(self.corrected(asked.read, rows, answer))


class BelievesAnswersFromAfterARename(WithEngine):
    engine_type = Believing


class ForgetsAbortedDataChanges(Management):
    """Adapts without the correction of Figure 8."""

    def task(self):
        return replace(super().task(), change_of=lambda occurrence: None)


class TakesSchemaChangesFirst(Management):
    def _receive(self, update):
        super()._receive(update)
        if isinstance(update, SchemaChanged):
            self.queue.remove(update)
            self.queue.appendleft(update)


class DoesNotWaitForItsSource(Management):
    """Tries every data change in its turn, also when an earlier one of its source was aborted."""

    def must_wait(self, update):
        return False


class DropsAbortedUpdates(Management):
    """An aborted data change is gone: the next schema change does not see to it."""

    def task(self):
        self.pending = [u for u in self.pending if not isinstance(u, Transaction)]
        return super().task()


@pytest.mark.parametrize(
    "wrong",
    [
        SkipsLocalCorrection,
        ForgetsNameMapping,
        BelievesAnswersFromAfterARename,
        ForgetsAbortedDataChanges,
        TakesSchemaChangesFirst,
        DoesNotWaitForItsSource,
        DropsAbortedUpdates,
    ],
)
def test_a_wrong_variant_is_caught(wrong):
    assert caught(wrong), f"{wrong.__name__} passed on every seed"


def test_an_r_v_that_counts_join_partners_is_caught(monkeypatch):
    """In a bag each row of R is there once per partner: without its key R_V is wrong."""

    def wrong(self, extent):
        return extent.select(tuple(Output(n, Column(n)) for n in self.shown))

    monkeypatch.setattr(MapVA, "r_v", wrong)
    assert caught(Management)


def caught(make) -> bool:
    for seed in range(400):
        try:
            if not verdict(seed, make).is_strong:
                return True
        except ViewkeeperError:
            return True  # it contradicted itself, or asked for what is not there
    return False


def test_updates_that_come_out_of_order_are_refused():
    scenario = random_evolution(0)
    source, script = next((s, script) for s, script in scenario.scripts.items() if len(script) > 1)
    world = EvolutionWorld(scenario)
    with pytest.raises(ViewkeeperError, match="number 1 was expected"):
        world.management.step(UpdateArrived(replace(script[1], source=source)))
