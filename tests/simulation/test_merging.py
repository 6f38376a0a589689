"""The merge process inside the engine, in its worlds: nothing waits that could go, and wrong ones are caught."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from simulation import broken_merging
from simulation.engine_worlds import FAMILIES, is_found_out, played
from simulation.promptness import could_go
from slices import CHECKING, seeds
from viewkeeper.engine import jobs
from viewkeeper.merging.commit_order import ORDERS
from viewkeeper.merging.merge_process import MergeProcess
from viewkeeper.simulator.engine.generator import scenario
from viewkeeper.simulator.engine.judging import judged
from viewkeeper.simulator.engine.world import EngineWorld

SEEDS = seeds(40, "VIEWKEEPER_MERGE_SEEDS")


class Watched(EngineWorld):
    """After every step, asks an oracle for rows that could be applied and are not."""

    several_rows = 0

    def _step(self, event):
        super()._step(event)
        for group in self.engine.groups:
            table = group.jobs.merge.table
            waiting = could_go(table)
            assert not waiting, f"rows {waiting} wait without need after {event}"
            for column in table.columns.values():
                lists = column.waiting.values()
                Watched.several_rows += any(len(each.rows) > 1 for each in lists)


@pytest.mark.parametrize("family", ["periodic", "slow", "global", "levels"])
def test_painting_is_prompt_in_every_world(family):
    Watched.several_rows = 0
    for seed in range(SEEDS):
        verdict = played(family, seed, world=Watched)
        assert not verdict.problems, (family, seed, verdict.problems)
    # Where a view is behind, its lists cover several rows: Algorithm 2, and not only Algorithm 1.
    assert Watched.several_rows or CHECKING or family not in ("periodic", "slow")


@pytest.mark.parametrize(
    ("variant", "family"),
    [
        (broken_merging.PaintingThatKeepsApplyRows, "slow"),
        (broken_merging.PaintingAsPrinted, "slow"),
        (broken_merging.SimplePaintingForStrongManagers, "slow"),
        (broken_merging.AsTheyCome, "slow"),
    ],
)
def test_a_wrong_algorithm_is_caught(variant, family, monkeypatch):
    assert family in FAMILIES
    monkeypatch.setattr(jobs, "MergeProcess", partial(MergeProcess, algorithm=variant))
    assert any(is_found_out(family, seed) for seed in range(300))


@pytest.mark.parametrize("order", ORDERS)
def test_under_every_order_of_commits_views_keep_their_level(order):
    # A commit has the state of every transaction in it, so that batches of commits are complete, too.
    for seed in range(SEEDS // 4):
        for family in ("slow", "kills"):
            drawn = scenario(seed, FAMILIES[family])
            limits = replace(drawn.limits, commits=order)
            world = EngineWorld(replace(drawn, limits=limits), seed)
            world.run()
            verdict = judged(world)
            assert not verdict.problems, (order, family, seed, verdict.problems)
