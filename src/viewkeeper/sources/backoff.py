"""Trying again after a fault that may pass: exponential backoff with jitter.

Randomness, clock and sleep are handed in, so that a test sees every delay and waits for none.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from viewkeeper.errors import SourceError

T = TypeVar("T")


@dataclass(frozen=True)
class Backoff:
    """How long to wait before each further attempt, and when to give up."""

    first_seconds: float = 0.1
    factor: float = 2.0
    most_seconds: float = 10.0
    # The last error is raised once this much time has gone by since the first attempt.
    patience_seconds: float = 60.0

    def delays(self, randomness: random.Random) -> Iterator[float]:
        """Jitter: uniform between half the step and the step, so that feeds do not flock."""
        step = self.first_seconds
        while True:
            yield step * (0.5 + 0.5 * randomness.random())
            step = min(step * self.factor, self.most_seconds)


def retrying(
    action: Callable[[], T],
    backoff: Backoff,
    *,
    randomness: random.Random,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    on_retry: Callable[[SourceError, float], None] | None = None,
) -> T:
    """The action's result; a retryable SourceError starts it again, any other error goes through."""
    started = clock()
    delays = backoff.delays(randomness)
    while True:
        try:
            return action()
        except SourceError as error:
            delay = next(delays)
            if not error.retryable or clock() - started + delay > backoff.patience_seconds:
                raise
            if on_retry is not None:
                on_retry(error, delay)
            sleep(delay)
