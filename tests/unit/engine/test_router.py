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
