"""Faults that were once in the product, put back by hand: the simulated engine finds each of them.

Transactions that were lost or torn, and schema changes that gave wrong rows or took views away. Some sat in the
engine, some in a source's decoder: those are put into what the simulated source reports. After how many seeds
each is found, and what no simulated source can have, is in decision 0148.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.engine_worlds import seeds_until_found
from viewkeeper.algebra.types import Schema
from viewkeeper.engine import intake, jobs, succession
from viewkeeper.engine import messages as out
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.group_state import GroupState
from viewkeeper.engine.intake import Intake
from viewkeeper.engine.router import Engine
from viewkeeper.engine.schema_barrier import SchemaBarrier
from viewkeeper.engine.transaction_ties import Unit, Units
from viewkeeper.evolution import synchronization
from viewkeeper.evolution.rewriting import Refused
from viewkeeper.merging.groups import partition
from viewkeeper.merging.messages import ActionList, ActionListArrived
from viewkeeper.simulator.engine import beginnings, readers, sources
from viewkeeper.simulator.engine.sources import SimulatedSource
from viewkeeper.simulator.engine.world import EngineWorld
from viewkeeper.sources.interface import SchemaChange, SourceTransaction

SEEDS_MAX = 300

# -- transactions that were lost or torn -------------------------------------------------------------------


def _without_generation(self, delivery, now):
    is_tied = self._machine.held or self._ties_any(delivery.items)
    for each in _released(self, delivery, now):
        if is_tied and isinstance(each, Delivery):
            each = replace(each, generation=0)
        elif is_tied and isinstance(each, Unit):
            each = replace(each, parts=tuple(replace(p, generation=0) for p in each.parts))
        yield each


_released = Units.released


def _half_a_row(self, serial, view, contents):
    job = self._open.get(serial)
    commits = []
    for each in job.concerned if job is not None and job.at_work else ():
        mine = contents if each == view else {each: {}}
        commits += self.merge.step(ActionListArrived(ActionList(each, job.rows, mine)))
        job.at_work.discard(each)
    return tuple(commits)


class ForgetsTies(EngineWorld):
    def _committed_ties(self) -> None:
        self._ties = []


def _begin_apart(self, now):
    start = self._beginning
    reads = {name: view.definition.relations for name, view in start.views.items()}
    for views in partition(reads, start.ties):
        fresh = tuple(name for name in views if name in start.new)
        for each in self._aligned(name for name in views if name not in start.new):
            self._begin(self._group(*each), now)
        if fresh:
            self._begin(self._group(fresh, self._present(fresh), new=fresh), now)


# -- schema changes ----------------------------------------------------------------------------------------


def _told_otherwise(change):
    """A source that tells of schema changes in a wrong way; ``change`` gives what it tells instead."""

    def reported(source, position, alter, before, after):
        for each in _reported(source, position, alter, before, after):
            yield change(each, alter)

    return reported


_reported = sources.reported


def _all_columns_lost(change, alter):
    if alter.rewritten is None or change.after is None:
        return change
    return replace(change, after=replace(change.after, schema=Schema(())), rewrites=False)


def _rows_kept(change, alter):
    return replace(change, rewrites=False, skips=False)


def _key_kept(change, alter):
    if change.before is None or change.after is None:
        return change
    key = tuple(alter.renamed_columns.get(c, c) for c in change.before.key)
    kept = key if all(c in change.after.schema for c in key) else ()
    return replace(change, after=replace(change.after, key=kept))


def _exchange_told_as_rename(change, alter):
    if alter.exchanged_with is None:
        return change
    names = {alter.relation, alter.exchanged_with} - {change.relation}
    return replace(change, after=None, rewrites=False, renamed_to=names.pop())


def _b_is_not_published(self, item, wanted):
    if isinstance(item, SourceTransaction) and item.identity > 3:
        wanted = wanted - {"b"}
    return _told(self, item, wanted)


def _columns_untold(self, item, wanted):
    if isinstance(item, SchemaChange) and item.after is not None and not item.rewrites:
        return []
    return _told(self, item, wanted)


_told = SimulatedSource._told


def _refused_if_absent(tables, catalog, lineages):
    found = _read_knowledge(tables, catalog, lineages)
    if found.notes:
        raise ValueError(found.notes[0])
    return found


_read_knowledge = beginnings.read_knowledge


def _without_lineages(tables, catalog, lineages):
    return _read_knowledge(tables, catalog, ())


def _each_at_its_newest(entries, views, txn):
    return dict.fromkeys(views, txn)


def _never_retyped(view, change, catalog):
    raise Refused("another type")


def _outer_joins_lose_nothing(view, change, candidate, catalog):
    if len(view.definition.all_terms) > 1:
        raise Refused("an outer join")
    return _carried_out(view, change, candidate, catalog)


_carried_out = synchronization._carried_out


def _tells_too_early(self, action):
    if isinstance(action, out.TellChange):
        action = replace(action, is_applied=True)
    _do(self, action)


_do = GroupState.do


def _asks_nobody(self, now):
    self._decision = "approve"
    return _take_next(self, now)


_take_next = SchemaBarrier.take_next


# -- and what these worlds found first ----------------------------------------------------------------------


def _by_place_alone(one, other):
    place = one.source, one.relation, one.position
    return place == (other.source, other.relation, other.position)


def _knows_new_views_by_old_names(state, batches, predecessors):
    new, state.pending.new = state.pending.new, ()
    _inherit(state, batches, predecessors)
    state.pending.new = new


_inherit = succession._inherit


PATCHES = {
    "what was held back has lost its generation": ("all", Units, "released", _without_generation),
    "a row is shown without all of its lists": ("plain", jobs.Jobs, "computed", _half_a_row),
    "a rebuilt table is told as one without columns": (
        "keys", sources, "reported", _told_otherwise(_all_columns_lost),
    ),
    "a rebuilt table is told as one with the same rows": (
        "keys", sources, "reported", _told_otherwise(_rows_kept),
    ),
    "another primary key is not told": ("keys", sources, "reported", _told_otherwise(_key_kept)),
    "a table's rows vanish from the feed": (
        "plain", SimulatedSource, "_told", _b_is_not_published,
    ),
    "columns change and nobody is told": ("schema", SimulatedSource, "_told", _columns_untold),
    "a view follows the old one of two exchanged tables": (
        "keys", sources, "reported", _told_otherwise(_exchange_told_as_rename),
    ),
    "a run does not begin where a replacement is gone": (
        "replacements", beginnings, "read_knowledge", _refused_if_absent,
    ),
    "a view ends when a column gets another type": (
        "keys", synchronization, "_retyped", _never_retyped,
    ),
    "a restart forgets what became of names in the knowledge file": (
        "lineage", beginnings, "read_knowledge", _without_lineages,
    ),
    "rows of a replacement are claimed for before they were rewritten": (
        "rewritten", SchemaBarrier, "_rewritten_replacements", lambda self, plan: set(),
    ),
    "views of several groups are read at their newest states": (
        "plain", readers, "numbers_at_one_cut", _each_at_its_newest,
    ),
    "an outer join ends when it could do without a column": (
        "outer joins", synchronization, "_carried_out", _outer_joins_lose_nothing,
    ),
    "two changes at one position are taken for one": ("keys", intake, "is_same", _by_place_alone),
    "what lies at the place that a feed goes back to is lost": (
        "statements", Intake, "_behind_same_place", lambda self, source: None,
    ),
    "applied is told before the rows are there": ("keys", GroupState, "do", _tells_too_early),
    "a change is taken that nobody has approved": (
        "approvals", SchemaBarrier, "take_next", _asks_nobody,
    ),
    "a new view's relations are known by old names": (
        "everything", succession, "_inherit", _knows_new_views_by_old_names,
    ),
}  # fmt: skip


def test_views_that_share_a_relation_and_begin_apart_are_found(monkeypatch):
    # The engine brings such groups together with the next delivery: both rules must be missing.
    monkeypatch.setattr(Engine, "_form_groups", _begin_apart)
    monkeypatch.setattr(Engine, "_unite_sharing", lambda self, now: None)
    assert seeds_until_found("new views", SEEDS_MAX) is not None


@pytest.mark.parametrize("fault", PATCHES)
def test_a_fault_of_a_part_is_found(fault, monkeypatch):
    family, place, name, instead = PATCHES[fault]
    monkeypatch.setattr(place, name, instead)
    assert seeds_until_found(family, SEEDS_MAX) is not None


def test_ties_that_a_restart_forgets_are_found():
    assert seeds_until_found("global", SEEDS_MAX, world=ForgetsTies) is not None
