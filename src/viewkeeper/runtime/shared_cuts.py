"""Open cuts that several jobs are asked at, one after the other.

A backlog is worked off in several batches. All of it is visible at the cuts of the first one, so the others are
asked for there, too: nobody waits until a feed has passed new cuts, and an answer that two batches need is
asked for once. How long a source has to keep such a snapshot is limited.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping

from viewkeeper.runtime.asking import Questions
from viewkeeper.sources.interface import Cut

# Older cuts are asked nothing new.
SECONDS_MAX = 10.0


class SharedCuts:
    """Closes its cuts when the last one who holds them lets go. Thread-safe; made, it is held once."""

    def __init__(self, questions: Questions, opened: contextlib.ExitStack) -> None:
        """``questions`` at the cuts, which ``opened`` closes."""
        self.questions = questions
        self._opened = opened
        self._until = time.monotonic() + SECONDS_MAX
        self._holders = 1
        self._lock = threading.Lock()

    @property
    def cuts(self) -> Mapping[str, Cut]:
        return self.questions.cuts

    @property
    def seconds_left(self) -> float:
        """For so long another job may be begun at them."""
        return max(0.0, self._until - time.monotonic())

    def hold(self) -> SharedCuts:
        """For somebody else who holds them already."""
        with self._lock:
            self._holders += 1
        return self

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            is_last = not self._holders
        if is_last:
            self._opened.close()
