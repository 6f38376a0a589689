"""The engine in simulated worlds: every state judged, and every wrong engine caught."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from simulation.engine_worlds import ALL, FAMILIES, is_found_out, played, played_in
from viewkeeper.algebra import Bag
from viewkeeper.engine import cuts, intake, machine
from viewkeeper.engine.intake import Intake
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.engine.world import EngineWorld

SEEDS = int(os.environ.get("VIEWKEEPER_ENGINE_SEEDS", "25"))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_state_of_every_world_is_right(family):
    states = changing = 0
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        verdict = played(family, seed)
        assert not verdict.problems, (family, seed, verdict.problems)
        states += verdict.states
        changing += verdict.changing
        counts.update(verdict.counts)
    # Worlds in which transactions change the views, and in which happens what the family is for.
    assert changing * 2 > states
    mix = FAMILIES[family]
    for what, wanted in {
        "schema changes": mix.schema_changes,
        "kills": mix.kills,
        "restarts": mix.restarts,
        "audits": mix.audits,
    }.items():
        assert counts[what] > 0 or not wanted, (family, what)


class EmptyHanded(EngineWorld):
    """View managers that compute nothing, for every job."""

    def _manager_done(self, group, view):
        done = self._managers[group].done[view]
        found = done[0].contents.items()
        empty = {n: {number: Bag(b.schema) for number, b in c.items()} for n, c in found}
        done[0] = replace(done[0], contents=empty)
        super()._manager_done(group, view)


@pytest.mark.parametrize("family", FAMILIES)
def test_who_does_nothing_is_found_out(family):
    seeds = range(100)
    found = sum(is_found_out(family, seed, world=EmptyHanded) for seed in seeds)
    # Where schemas change, a view may end, or wait for an approval, before it has shown a transaction.
    assert found >= (90 if FAMILIES[family].schema_changes else 99)


def test_a_unit_may_have_parts_that_no_view_reads():
    # Two global transactions of which views read nothing are one unit, with all that lies between them.
    assert not played_in(ALL, 602).problems


# -- wrong engines ---------------------------------------------------------------------------------------


def _only_a_prefix(cut, applied, waiting):
    known = _reflected_by(cut, applied, waiting)
    return Reflected(known.upto)


_reflected_by = cuts.reflected_by


class ForgetsWhatFailed(GroupMachine):
    def _give_up_jobs(self):
        uncommitted = super()._give_up_jobs()
        return uncommitted[len(self.jobs.batches) :]


class DoesNotWaitForPredecessors(GroupMachine):
    def __init__(self, *arguments) -> None:
        *others, _, taken = arguments
        super().__init__(*others, (), taken)


class CommitsPositionsAhead(GroupMachine):
    def _reached_with(self, rows, batch):
        return dict(self.intake.fed)


class ClaimsOldPositions(GroupMachine):
    def _move_to(self, source) -> None:
        pass


WRONG_MACHINES = {
    "what failed is forgotten": (ForgetsWhatFailed, "kills"),
    "a group begins before its predecessors end": (DoesNotWaitForPredecessors, "plain"),
    "positions are committed before their rows": (CommitsPositionsAhead, "kills"),
    "rows after a rewrite at the positions before it": (ClaimsOldPositions, "schema"),
}


@pytest.mark.parametrize("wrong", WRONG_MACHINES)
def test_a_wrong_machine_is_caught(wrong):
    make, family = WRONG_MACHINES[wrong]
    assert any(is_found_out(family, seed, make) for seed in range(60))


def _anything_is_behind(snapshots, of):
    return []


def _any_generation(self, delivery, now) -> None:
    self.generation.pop(delivery.source, None)
    _deliver(self, replace(delivery, generation=0), now)


_deliver = Intake._deliver


def _as_it_was(origin, change):
    return origin


def _states_at_once(batch):
    return [0] * len(batch)


WRONG_PARTS = {
    "cuts are used before the feeds have passed them": (
        cuts,
        "behind",
        _anything_is_behind,
        "plain",
    ),
    "a cut is taken for a prefix": (cuts, "reflected_by", _only_a_prefix, "plain"),
    "deliveries of before a feed went back count": (Intake, "_deliver", _any_generation, "all"),
    "repeated transactions count again": (Intake, "_is_repeated", lambda *_: False, "kills"),
    "rows keep the shape of before": (machine, "as_after", _as_it_was, "schema"),
    "rows read again keep the shape of before": (intake, "as_after", _as_it_was, "all"),
    "a change is taken twice": (Intake, "_is_taken", lambda *_: False, "all"),
    "several transactions in one state": (machine, "states_of", _states_at_once, "plain"),
    "schema changes do not hold what follows": (Intake, "_concerns", lambda *_: False, "schema"),
}


@pytest.mark.parametrize("wrong", WRONG_PARTS)
def test_a_wrong_part_is_caught(wrong, monkeypatch):
    place, name, instead, family = WRONG_PARTS[wrong]
    monkeypatch.setattr(place, name, instead)
    assert any(is_found_out(family, seed, GroupMachine) for seed in range(150))
