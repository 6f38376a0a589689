"""What goes to which group, and where feeds are sent back to."""

from __future__ import annotations

from types import SimpleNamespace

from viewkeeper.engine.messages import FollowFeed
from viewkeeper.engine.router import Engine


def compared(source: str, left, right) -> int:
    return (left["n"] > right["n"]) - (left["n"] < right["n"])


def engine(feeding: int) -> Engine:
    made = object.__new__(Engine)
    made.groups, made.parting, made._actions = [], [], []
    made._compare = compared
    made._feeding, made._generation = {"crm": {"n": feeding}}, {"crm": 0}
    made._units = SimpleNamespace(relations_of=lambda source: (), go_back=lambda *_: None)
    return made


def test_a_feed_that_two_groups_send_back_begins_where_the_first_of_them_stands():
    """At the later position it would leave out what the other group has not seen yet."""
    made = engine(7)
    assert [made._follow("crm", {"n": n}) for n in (3, 6)] == [1, 2]
    follows = [action for _, action in made._actions if isinstance(action, FollowFeed)]
    assert [follow.position["n"] for follow in follows] == [3, 3]


def test_a_feed_goes_back_to_where_a_group_stands():
    made = engine(9)
    made._follow("crm", {"n": 6})
    (_, follow) = made._actions[0]
    assert follow.position == {"n": 6}


def test_views_that_read_one_source_begin_together_whatever_else_would_fit():
    """A view of another source fits any cut: it must not be lost to those that it shares a relation with."""
    made = engine(0)
    standing = {
        "v0": {"s1": {"n": 3}, "s2": {"n": 4}},
        "v1": {"s2": {"n": 0}, "s3": {"n": 3}},
        "v2": {"s3": {"n": 3}},
        "v3": {"s4": {"n": 1}},
    }
    made._beginning = SimpleNamespace(standing=standing)
    found = [sorted(views) for views, _ in made._aligned(standing)]
    assert sorted(found) == [["v0", "v3"], ["v1", "v2"]]


def test_groups_whose_views_come_to_share_a_relation_become_one():
    """A schema change gave a view of one of them another relation to read: from then on they move together."""
    made = engine(0)
    group = lambda number, *read: SimpleNamespace(  # noqa: E731
        number=number,
        is_loose=False,
        scope=SimpleNamespace(relations=read, views={f"v{number}": 1}),
    )
    replaced = []
    made._replace = lambda members, views, now: replaced.append((members, views))
    made._scopes = {}
    made.groups = [group(1, "a"), group(2, "b"), group(3, "c")]
    made._unite_sharing(0.0)
    assert replaced == []
    made.groups[2].scope = SimpleNamespace(relations=("a", "c"), views={"v3": 1})
    made._unite_sharing(0.0)
    assert replaced == [((made.groups[0], made.groups[2]), ["v1", "v3"])]
