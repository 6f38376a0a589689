import random
from itertools import islice

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.sources.backoff import Backoff, retrying


def fault(retryable):
    return SourceError("gone", "the link is gone", source="s", retryable=retryable)


class Scene:
    """A clock that moves only when somebody sleeps, and an action that fails so many times."""

    def __init__(self, failures, retryable=True):
        self.now, self.calls, self.failures, self.retryable = 0.0, 0, failures, retryable

    def action(self):
        self.calls += 1
        if self.calls <= self.failures:
            raise fault(self.retryable)
        return "done"

    def sleep(self, seconds):
        self.now += seconds

    def run(self, backoff=None):
        return retrying(
            self.action,
            backoff or Backoff(),
            randomness=random.Random(1),
            sleep=self.sleep,
            clock=lambda: self.now,
        )


def test_delays_double_up_to_the_most_and_jitter_by_at_most_half():
    delays = list(islice(Backoff(1, 2, 4, 60).delays(random.Random(7)), 5))
    for delay, step in zip(delays, [1, 2, 4, 4, 4], strict=True):
        assert step / 2 <= delay <= step


def test_a_passing_fault_is_tried_again_until_it_works():
    scene = Scene(failures=3)
    assert scene.run() == "done"
    assert scene.calls == 4
    assert scene.now > 0


def test_a_permanent_fault_is_raised_at_once():
    scene = Scene(failures=1, retryable=False)
    with pytest.raises(SourceError):
        scene.run()
    assert (scene.calls, scene.now) == (1, 0.0)


def test_patience_ends():
    scene = Scene(failures=10**6)
    with pytest.raises(SourceError):
        scene.run(Backoff(patience_seconds=30))
    assert scene.now <= 30
    assert scene.calls > 3
