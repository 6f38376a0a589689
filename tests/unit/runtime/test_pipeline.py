"""What a pipeline says of its groups."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from viewkeeper.runtime.pipeline import Pipeline


class Numbered:
    """A source whose positions are numbers."""

    def compare_positions(self, left, right) -> int:
        return (left["at"] > right["at"]) - (left["at"] < right["at"])


def group(at: int, **said) -> SimpleNamespace:
    known = {"has_ended": False, "has_failed": False, "waits_for_word": None, **said}
    return SimpleNamespace(sources=("crm",), reached={"crm": {"at": at}}, **known)


def pipeline(*groups, parting=()) -> Pipeline:
    made = object.__new__(Pipeline)
    made.sources, made.groups, made._parting = {"crm": Numbered()}, list(groups), list(parting)
    return made


def test_nothing_is_applied_before_those_have_applied_it_who_come_to_their_end():
    """Their successor begins where they end, and has not done a thing yet."""
    member = group(3)
    uniting = pipeline(group(5), parting=[member])
    assert not uniting.has_applied({"crm": {"at": 4}})
    member.reached, member.has_ended = {"crm": {"at": 5}}, True
    assert uniting.has_applied({"crm": {"at": 4}})
    assert not uniting.has_applied({"crm": {"at": 6}})


def test_a_group_that_comes_to_its_end_may_be_the_one_that_waits_for_somebody_s_word():
    member = group(3, waits_for_word="a change")
    assert pipeline(group(5), parting=[member]).waiting_for_word == (member, "a change")
    assert pipeline(group(5)).waiting_for_word is None


def test_a_feed_that_two_groups_send_back_begins_where_the_first_of_them_stands():
    """At the later position it would leave out what the other group has not seen yet."""
    made = pipeline()
    followed = []

    def follow(source, relations, position, known) -> int:
        followed.append(position["at"])
        return len(followed)

    made._routing = threading.Lock()
    made._feeding = {"crm": {"at": 7}}
    made._units = SimpleNamespace(relations_of=lambda source: (), go_back=lambda *_: None)
    made.feeds = SimpleNamespace(follow=follow)
    made._follow("crm", {"at": 3})
    made._follow("crm", {"at": 6})
    assert followed == [3, 3]
    made._feeding["crm"] = {"at": 9}
    made._follow("crm", {"at": 6})
    assert followed == [3, 3, 6]
