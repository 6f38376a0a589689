"""Adaptations in simulated worlds, by the code that runs live: every wrong one is caught."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from simulation.engine_worlds import is_found_out, played
from slices import CHECKING, seeds
from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.engine import failures
from viewkeeper.engine.pending_changes import PendingChanges
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.evolution.map_va import MapVA
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.simulator.engine.world import EngineWorld

FAMILY = "adaptations"
SEEDS = seeds(60, "VIEWKEEPER_ENGINE_SEEDS")


@pytest.mark.thorough
def test_the_worlds_have_what_they_are_for():
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        counts.update(played(FAMILY, seed).counts)
    few = 2 if CHECKING else 20
    assert counts["by Map-VA"] >= few
    assert counts["broken queries"] >= few // 4
    assert counts["kills"] >= few
    assert counts["ended"] >= few // 2


def with_partners(self, extent):
    """Each row of R once per partner in the join, as a plain projection of the extent gives it."""
    return extent.select(tuple(Output(name, Column(name)) for name in self.shown))


def only_what_is_new(self, s_nv, r_v):
    """The rows of S that R does not have; those of R that S does not have stay."""
    difference = s_nv - r_v
    return type(difference)(difference.schema, ((r, n) for r, n in difference if n > 0))


def the_last_one(self, later):
    return later


def as_if_nothing_had_jumped(self, views):
    jumps, self.jumps = self.jumps, {}
    try:
        return _adaptations(self, views)
    finally:
        self.jumps = jumps


_adaptations = PendingChanges.adaptations


def one_step(self, views):
    used = {name for view in views.values() for name in view.definition.relations}
    known = {relation.name for relation in self.catalog.relations}
    others = {r.by for r in self.knowledge.replacements if r.relation in used}
    return tuple(sorted((others - used) & known))


WRONG = {
    "R_V counts join partners": (MapVA, "r_v", with_partners),
    "rows of the lost relation stay": (MapVA, "delta_r", only_what_is_new),
    "the difference is left out": (MapVA, "new_extent", lambda self, v0, delta_v: v0),
    "of several changes only the last is in the mapping": (
        EvolutionMapping,
        "merged",
        the_last_one,
    ),
    "extents are adapted over rows that no feed told of": (
        PendingChanges,
        "adaptations",
        as_if_nothing_had_jumped,
    ),
    "what stands for a substitute is not followed": (Evolution, "watched", one_step),
    "a broken query is an error like any other": (failures, "BROKEN", ()),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_adaptation_is_caught(wrong, monkeypatch):
    monkeypatch.setattr(*WRONG[wrong])
    assert any(is_found_out(FAMILY, seed) for seed in range(100))


class ReadsThePresent(EngineWorld):
    """Aborted data changes are left in what an adaptation reads: the fault of Example 9."""

    def _fill(self, group, fill):
        super()._fill(group, replace(fill, waiting=()))


def test_an_adaptation_that_reads_the_present_is_caught():
    assert any(is_found_out(FAMILY, seed, world=ReadsThePresent) for seed in range(60))
