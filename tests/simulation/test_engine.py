"""The engine in simulated worlds: every state judged, and every wrong engine caught."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from simulation.engine_worlds import ALL, FAMILIES, is_found_out, played, played_in
from slices import CHECKING, seeds
from viewkeeper.engine import batches, commits, cuts, intake, relevance, schema_barrier
from viewkeeper.engine.batches import Batches
from viewkeeper.engine.commits import Commits
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.intake import Intake
from viewkeeper.engine.integrator import Integrator
from viewkeeper.engine.jobs import Jobs
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.schema_barrier import SchemaBarrier
from viewkeeper.engine.view import View
from viewkeeper.merging.table import ViewUpdateTable
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.engine.managers import Managers

SEEDS = seeds(25, "VIEWKEEPER_ENGINE_SEEDS")


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
    if CHECKING:
        return  # a single seed need not have everything
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


OCCURS = (
    "cuts that reflect no prefix", "feeds sent back", "restarts", "failures", "broken queries", "kills",
    "global transactions", "unions", "groups that part", "jobs of slow views", "audits", "reads of several views",
    "primary keys", "tables exchanged", "tables renamed", "tables dropped", "tables rewritten",
    "tables skipped and read again", "columns renamed", "columns added, dropped or retyped",
    "several in one statement", "changes due at several sources", "drops while views are to be filled",
    "frozen", "ended", "parts searched",
)  # fmt: skip


@pytest.mark.thorough
def test_everything_occurs_that_worlds_are_for():
    counts: Counter[str] = Counter()
    for family in FAMILIES:
        for seed in range(12):
            counts.update(played(family, seed).counts)
    assert [what for what in OCCURS if not counts[what]] == []
    # All of the views' histories were judged without claims.
    assert counts["parts not searched"] == 0


def _nothing(self, view, job, cuts):
    return {}


@pytest.mark.parametrize("family", FAMILIES)
def test_who_does_nothing_is_found_out(family, monkeypatch):
    monkeypatch.setattr(Managers, "computed", _nothing)
    seeds = range(100)
    found = sum(is_found_out(family, seed) for seed in seeds)
    mix = FAMILIES[family]
    # Else all views may end, or wait for an approval, before they have shown a transaction.
    assert found >= (99 if mix.has_survivor or not mix.schema_changes else 90)


def test_a_unit_may_have_parts_that_no_view_reads():
    # Two global transactions of which views read nothing are one unit, with all that lies between them.
    assert not played_in(ALL, 602).problems


# -- wrong engines ---------------------------------------------------------------------------------------


def _only_a_prefix(cut, applied, waiting):
    known = _reflected_by(cut, applied, waiting)
    return Reflected(known.upto)


_reflected_by = cuts.reflected_by


class DoesNotWaitForPredecessors(GroupMachine):
    def __init__(self, *arguments) -> None:
        *others, _, taken = arguments
        super().__init__(*others, (), taken)


def _what_was_not_begun(self):
    begun = len(self._state.jobs.batches)
    return _give_up(self)[begun:]


def _lose_what_waits(self):
    waiting = {a.number for row in self._state.jobs.waiting.values() for a in row.batch}
    return [a for a in _give_up(self) if a.number not in waiting]


_give_up = Batches.give_up


def _all_that_was_fed(self, rows, batch):
    return dict(self._state.intake.fed)


def _as_if_nothing_waited(self, rows, batch):
    jobs = self._state.jobs
    waiting, jobs.by_row = jobs.by_row, {}
    try:
        return _reached_with(self, rows, batch)
    finally:
        jobs.by_row = waiting


_reached_with = Commits._reached_with


def _all_of_it(self, rows, batch):
    return batch[-1].last_number


def _unless_a_period_runs(self, now):
    return _may_close(self, now) and not self._early(now)


_may_close = Batches._may_close


def _only_what_is_in_no_batch(self):
    return list(self.intake.integrator.pending)


WRONG_MACHINES = {
    "a group begins before its predecessors end": (DoesNotWaitForPredecessors, "plain"),
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


def _none(self, number):
    return iter(())


def _first_row(self, serial, view, contents):
    job = self._open[serial]
    self._open[serial] = replace(job, rows=job.rows[:1])
    return _computed(self, serial, view, contents)


_computed = Jobs.computed


def _only_their_own(self, since, end, views):
    for job in _jobs(self, since, end, views):
        own = [self.by_row[row].batch for row in job.rows] or [job.batch]
        yield replace(job, batch=tuple(a for batch in own for a in batch))


_jobs = Jobs._jobs


def _without_order(self, number, views, streams=()):
    _announce(self, number, views)


_announce = ViewUpdateTable.announce


def _in_one_row(batch, concerned, held):
    views = concerned(batch)
    yield batch, views, held.is_held(views, {a.origin.source for a in batch})


def _only_what_was_put_in(arrivals, name):
    for arrival in arrivals:
        yield from (r for n, c in arrival.transaction.changes if n == name for r in c.inserted)


def _ends_block_at_once(self):
    self.end_block()
    return False


def _a_state_for_each(batch):
    return list(range(len(batch)))


def _one_more(self):
    return self._in_block > self._block


WRONG_PARTS = {
    "a block has one transaction too many": (Integrator, "is_full", property(_one_more), "blocks"),
    "a block is shown before it is whole": (
        Integrator,
        "waits_for_block",
        property(_ends_block_at_once),
        "blocks",
    ),
    "every transaction of a block has a state": (
        commits,
        "states_of",
        _a_state_for_each,
        "blocks",
    ),
    "a row that leaves a view is not looked at": (
        relevance,
        "_rows",
        _only_what_was_put_in,
        "conditions and changes",
    ),
    "what a condition rules out waits for the view": (
        View,
        "row_tests",
        {},
        "conditions",
    ),
    "what failed is forgotten": (Batches, "give_up", _what_was_not_begun, "kills"),
    "positions are committed before their rows": (
        Commits,
        "_reached_with",
        _all_that_was_fed,
        "kills",
    ),
    "rows after a rewrite at the positions before it": (
        SchemaBarrier,
        "_move_to",
        lambda *_: None,
        "schema",
    ),
    "changes are forgotten that a view still needs": (
        Commits,
        "_forgettable",
        _all_of_it,
        "periods",
    ),
    "a period delays what its view does not read": (
        Batches,
        "_may_close",
        _unless_a_period_runs,
        "periodic",
    ),
    "rows that wait for a period are lost at a schema change": (
        Batches,
        "give_up",
        _lose_what_waits,
        "periods",
    ),
    "whole relations are read with rows that wait": (
        GroupState,
        "uncommitted",
        property(_only_what_is_in_no_batch),
        "periods",
    ),
    "positions pass rows that wait": (
        Commits,
        "_reached_with",
        _as_if_nothing_waited,
        "periods",
    ),
    "a list releases half of its rows": (ViewUpdateTable, "covered_with", _none, "periodic"),
    "a list covers one of its rows": (Jobs, "computed", _first_row, "periodic"),
    "a row shows before an earlier one of its view": (
        ViewUpdateTable,
        "earlier",
        _none,
        "periodic",
    ),
    "a source's transactions show in another order": (
        ViewUpdateTable,
        "announce",
        _without_order,
        "slow",
    ),
    "a job leaves out what does not concern it": (Jobs, "_jobs", _only_their_own, "periodic"),
    "what a period holds shares a row with what it does not": (
        batches,
        "parted",
        _in_one_row,
        "periodic",
    ),
    "cuts are used before the feeds have passed them": (
        cuts,
        "behind",
        _anything_is_behind,
        "plain",
    ),
    "a cut is taken for a prefix": (cuts, "reflected_by", _only_a_prefix, "plain"),
    "deliveries of before a feed went back count": (Intake, "_deliver", _any_generation, "all"),
    "repeated transactions count again": (Intake, "_is_repeated", lambda *_: False, "kills"),
    "rows keep the shape of before": (schema_barrier, "as_after", _as_it_was, "schema"),
    "rows read again keep the shape of before": (intake, "as_after", _as_it_was, "all"),
    "a change is taken twice": (Intake, "_is_taken", lambda *_: False, "all"),
    "several transactions in one state": (commits, "states_of", _states_at_once, "plain"),
    "schema changes do not hold what follows": (Intake, "_concerns", lambda *_: False, "schema"),
}


@pytest.mark.parametrize("wrong", WRONG_PARTS)
def test_a_wrong_part_is_caught(wrong, monkeypatch):
    place, name, instead, family = WRONG_PARTS[wrong]
    monkeypatch.setattr(place, name, instead)
    assert any(is_found_out(family, seed, GroupMachine) for seed in range(150))
