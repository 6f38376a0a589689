"""The driver takes events to the engine from every thread, and has done at once what concerns feeds."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace

import pytest

from viewkeeper.engine import messages as m
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.router import NO_GROUP
from viewkeeper.errors import InvariantViolated
from viewkeeper.live.driver import Driver

PATIENCE_SECONDS = 300


class ScriptedEngine:
    """Answers each event with the next actions; notes what it was given."""

    def __init__(self, *answers) -> None:
        self.events: list = []
        self.wake_at = math.inf
        self.full = False
        self.stepped = threading.Semaphore(0)
        self._answers = list(answers)

    def step(self, event, now):
        self.events.append(event)
        if isinstance(event, m.TimePassed):
            self.wake_at = math.inf
        self.stepped.release()
        return self._answers.pop(0) if self._answers else ()

    def is_full(self, source) -> bool:
        return self.full


class Feeds:
    is_stopping = False

    def __init__(self, generation: int = 1) -> None:
        self.followed: list = []
        self._generation = generation

    def follow(self, source, relations, position, known) -> int:
        self.followed.append((source, position))
        return self._generation


def driver(engine: ScriptedEngine, feeds: Feeds) -> tuple[Driver, list]:
    reported: list = []
    around = SimpleNamespace(report=reported.append, tell=reported.append)
    return Driver(engine, around, feeds), reported  # type: ignore[arg-type]


def follow(generation: int) -> m.FollowFeed:
    return m.FollowFeed("shop", ("orders",), {"n": 3}, {}, generation)


DELIVERY = Delivery("shop", (), {"n": 4}, "life")


def test_a_feed_has_gone_back_before_the_step_that_sent_it_is_over():
    feeds = Feeds()
    made, _ = driver(ScriptedEngine(((NO_GROUP, follow(1)),)), feeds)
    made.step(m.FeedDelivered(DELIVERY))
    assert feeds.followed == [("shop", {"n": 3})]


def test_a_feed_that_counts_its_generations_otherwise_is_a_defect():
    made, _ = driver(ScriptedEngine(((NO_GROUP, follow(1)),)), Feeds(generation=2))
    with pytest.raises(InvariantViolated):
        made.step(m.FeedDelivered(DELIVERY))


def test_the_clock_wakes_the_engine_once_when_it_wants_to_be_woken():
    engine = ScriptedEngine()
    engine.wake_at = Driver.now()
    made, reported = driver(engine, Feeds())
    made.begin(())
    assert engine.stepped.acquire(timeout=PATIENCE_SECONDS)
    made.close()
    assert engine.events == [m.TimePassed()]
    assert reported == []


def test_a_clock_that_meets_a_defect_reports_it():
    engine = ScriptedEngine(((NO_GROUP, follow(1)),))
    engine.wake_at = Driver.now()
    made, reported = driver(engine, Feeds(generation=2))
    made.begin(())
    made.wait_until(lambda: bool(reported), PATIENCE_SECONDS)
    made.close()
    assert [type(each) for each in reported] == [InvariantViolated]


def test_a_delivery_waits_while_a_group_has_no_room():
    engine = ScriptedEngine()
    engine.full = True
    made, _ = driver(engine, Feeds())
    delivering = threading.Thread(target=made.deliver, args=(DELIVERY,), daemon=True)
    delivering.start()
    made.step(m.TimePassed())
    assert engine.events == [m.TimePassed()]
    engine.full = False
    made.notify()
    delivering.join(PATIENCE_SECONDS)
    assert engine.events == [m.TimePassed(), m.FeedDelivered(DELIVERY)]
