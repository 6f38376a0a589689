"""Views that have nothing to do with each other, told apart."""

from __future__ import annotations

from viewkeeper.merging.groups import partition


def test_views_that_share_a_relation_are_together_also_by_way_of_others() -> None:
    views = {"a": "R", "b": "T", "c": "RS", "d": "SU", "e": "X"}
    assert partition(views) == (("a", "c", "d"), ("b",), ("e",))


def test_a_tie_joins_groups_and_ignores_views_that_are_not_there() -> None:
    views = {"a": "R", "b": "T", "c": "X"}
    assert partition(views, [("a", "c"), ("b", "gone")]) == (("a", "c"), ("b",))
