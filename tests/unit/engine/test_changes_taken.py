"""Changes that were taken, and the extents that are behind them."""

from __future__ import annotations

from dataclasses import replace

from unit.engine.small_group import CATALOG, TEXTS, renamed_column
from viewkeeper.engine.pending_changes import PendingChanges
from viewkeeper.engine.schema_changes import Evolution, foreseen
from viewkeeper.project.views_folder import parsed_views

VIEWS = parsed_views(TEXTS, CATALOG)


def rewrite(at: int):
    change = renamed_column("s", at)
    return replace(change, after=change.before, renamed_columns={}, rewrites=True)


def plan(at: int = 1):
    return foreseen(rewrite(at), VIEWS, Evolution(CATALOG))


def test_an_extent_is_behind_the_definition_that_it_was_filled_for():
    pending = PendingChanges(())
    pending.take(plan(1), VIEWS)
    pending.new = ("A",)
    old = pending.outdated["A"][0]
    later = {n: replace(v, definition=replace(v.definition)) for n, v in VIEWS.items()}
    pending.take(plan(2), later)
    # Two changes before one filling: the extent is still that of before the first.
    assert pending.outdated["A"][0] is old is VIEWS["A"].definition


def test_a_view_that_was_never_filled_has_no_extent_to_bring_over():
    pending = PendingChanges(["A"])
    pending.take(plan(), VIEWS)
    assert pending.outdated == {}


def test_what_is_done_is_told_once():
    pending = PendingChanges(())
    taken = plan()
    pending.take(taken, VIEWS)
    pending.jumps["s"] = {"n": 1}
    assert pending.done() == [taken]
    assert (pending.done(), pending.new, pending.outdated, pending.jumps) == ([], (), {}, {})
