"""Ctrl-C and its like, taken only where nothing is half done.

Between starting a process and noting that it was started there must be no interruption, or no one
would end it; and while everything is being ended there must be none either.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Turns the signals that end a program into KeyboardInterrupt. Use it in the main thread."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_pending = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._depth:
            self._is_pending = True
        else:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Inside, nothing is interrupted; what came meanwhile takes effect at the end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._is_pending and not self._depth:
            self._is_pending = False
            raise KeyboardInterrupt

    def ignore(self) -> None:
        """From now on nothing interrupts: the end has begun."""
        self._depth += 1
