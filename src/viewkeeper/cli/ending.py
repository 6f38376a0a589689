"""How a long command ends on Ctrl-C and SIGTERM: in order if that is soon done, and soon in any case.

The first signal sets ``stop``, and the command ends in order. What has not ended after the grace period leaves
at once: its last words are said, what it started is killed by number, and the process is gone. A second
signal does not wait for that. Nothing of it needs the main thread; and where Python itself is not to be had,
because one call keeps the interpreter, the watchman kills from outside (`viewkeeper.cli.watchman`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from viewkeeper import children
from viewkeeper.cli import watchman
from viewkeeper.terminal import INTERRUPTED

GRACE_SECONDS = 3.0
# How long last words may take, and how much later than ourselves the watchman acts.
LAST_WORDS_SECONDS = 0.5
WATCHMAN_SECONDS = 1.0


class Ending:
    """Entered around a whole command, in the main thread; elsewhere signals are somebody else's."""

    def __init__(
        self,
        grace_seconds: float = GRACE_SECONDS,
        watchman_seconds: float = WATCHMAN_SECONDS,
        *,
        raises: bool = False,
    ) -> None:
        """``raises`` KeyboardInterrupt at the first signal, for a command that does not look at ``stop``."""
        self.stop = threading.Event()
        # The exit code of a command that had to leave. One that had done its work says so here.
        self.code = INTERRUPTED
        # Said before leaving, from another thread than the one that was to say it.
        self.last_words: list[Callable[[], object]] = []
        self._grace_seconds = grace_seconds
        self._watchman_seconds = watchman_seconds
        self._raises = raises
        self._over = threading.Event()
        self._watchman: subprocess.Popen[bytes] | None = None
        self._wake: int | None = None
        self._kept: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._begin()
        return self

    def _begin(self) -> None:
        read, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        limits = (self._grace_seconds + self._watchman_seconds, self._watchman_seconds)
        command = [sys.executable, "-I", "-S", str(watchman.__file__), str(os.getpid())]
        self._watchman = subprocess.Popen(
            [*command, *map(str, limits)],
            stdin=read,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches all of a terminal's group
            env=children.environment(),
        )
        os.close(read)
        assert self._watchman.stdout is not None
        self._watchman.stdout.read(1)  # from here on it is on its guard
        self._listener = threading.Thread(target=self._listen, name="ending", daemon=True)
        self._listener.start()
        self._kept = {n: signal.getsignal(n) for n in watchman.ENDING}
        self._kept_wake = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self.heed()

    def heed(self) -> None:
        """Take the signals, again when somebody else has taken them: Spark does when it starts."""
        if self._watchman is not None:
            for number in watchman.ENDING:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.stop.set()
        raises, self._raises = self._raises, False
        if raises:
            raise KeyboardInterrupt

    def _listen(self) -> None:
        """What the watchman passes on: the first signal begins the grace period, the second ends it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, watchman.ENDING)  # the main thread's
        assert self._watchman is not None
        assert self._watchman.stdout is not None
        pipe = self._watchman.stdout.fileno()
        if not os.read(pipe, 1):
            return
        self.stop.set()
        threading.Thread(target=self._expire, name="grace", daemon=True).start()
        if os.read(pipe, 1):
            self.leave()

    def _expire(self) -> None:
        if not self._over.wait(self._grace_seconds):
            self.leave()

    def leave(self) -> None:
        """End the process now, and all that it started."""
        saying = threading.Thread(target=self._say, name="last words", daemon=True)
        saying.start()
        saying.join(LAST_WORDS_SECONDS)
        watchman.kill(watchman.below(os.getpid()))
        os._exit(self.code)

    def _say(self) -> None:
        for say in self.last_words:
            with contextlib.suppress(Exception):
                say()

    def __exit__(self, *_: object) -> None:
        if self._watchman is None or self._wake is None or self.stop.is_set():
            # After a signal the limits hold until the process is gone: Python waits for threads at
            # its end, and one of them may be waiting for a database.
            return
        self._over.set()
        signal.set_wakeup_fd(self._kept_wake)
        for number, handler in self._kept.items():
            signal.signal(number, handler)
        os.close(self._wake)  # the watchman ends, and with it the thread that listens to it
        try:
            self._watchman.wait(WATCHMAN_SECONDS)
        except subprocess.TimeoutExpired:
            self._watchman.kill()
            self._watchman.wait()
        self._listener.join()
        if self._watchman.stdout is not None:
            self._watchman.stdout.close()
