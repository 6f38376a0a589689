"""Open cuts that several jobs are asked at, one after the other.

A backlog is worked off in several batches. All of it is visible at the cuts of the first one, so the others are
asked for there, too: no job waits until a feed has passed new cuts, and an answer that two batches need is
asked for once. The engine says for how long.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping

from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.sources.interface import Snapshot


class SharedCuts:
    """Closes its cuts when the last one who holds them lets go. Thread-safe; made, it is held once."""

    def __init__(self, questions: Questions, opened: contextlib.ExitStack) -> None:
        """``questions`` at the cuts, which ``opened`` closes."""
        self.questions = questions
        self._opened = opened
        self._holders = 1
        self._lock = threading.Lock()

    @property
    def cuts(self) -> Mapping[str, Snapshot]:
        return self.questions.cuts

    def before_closing(self, call: Callable[[], None]) -> None:
        """Have something ended before the cuts are closed."""
        self._opened.callback(call)

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
