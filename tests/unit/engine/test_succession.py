"""How a group takes over from its predecessors."""

from __future__ import annotations

from types import SimpleNamespace

from unit.engine.small_group import SmallGroup, renamed_column
from viewkeeper.engine.succession import take_over
from viewkeeper.simulator.engine.sources import position


def predecessor(group: SmallGroup, *, has_evolved: bool = False) -> SimpleNamespace:
    """A group that has ended, as its successor sees it."""
    state = group.state
    return SimpleNamespace(
        began_with=("A", "B"),
        reached=state.reached,
        intake=state.intake,
        scope=state.scope,
        has_evolved=has_evolved,
    )


def test_it_begins_in_the_generation_of_its_predecessors():
    """Else it would take deliveries in that were read before a feed went back."""
    before, after = SmallGroup(), SmallGroup()
    before.state.intake.generation["s"] = 3
    after.state.intake.generation["s"] = 1
    take_over(after.state, after.batches, [predecessor(before)])
    assert after.state.intake.generation["s"] == 3


def test_it_knows_the_changes_that_its_predecessors_have_taken():
    before, after = SmallGroup(), SmallGroup()
    before.state.intake.take_change(renamed_column("s", 2))
    take_over(after.state, after.batches, [predecessor(before)])
    assert [change.position for change in after.state.intake.taken] == [position(2)]


def test_where_it_begins_may_be_in_no_entry_of_the_ledger():
    before, after = SmallGroup(), SmallGroup()
    take_over(after.state, after.batches, [predecessor(before)])
    assert after.state.notes.noted == {}


def test_views_are_as_they_became_and_those_that_ended_are_gone():
    before, after = SmallGroup(), SmallGroup()
    before.state.intake.due.append(renamed_column("s", 1))
    before.evolving.take_next(0.0)
    ended = predecessor(before, has_evolved=True)
    ended.scope.views.pop("B")
    take_over(after.state, after.batches, [ended])
    assert list(after.state.scope.views) == ["A"]
    catalog = {str(r.name): r.schema.names for r in after.state.scope.evolution.catalog.relations}
    assert catalog["s.r"] == ("k", "title")
