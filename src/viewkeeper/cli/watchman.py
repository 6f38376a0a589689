"""The watchman: a small process beside a command, which sees to it that a signal ends the command.

Python runs a signal's handler only between two of its own steps, in the main thread. One long call (a join in
C, a text pattern that backtracks and keeps the interpreter to itself) makes the command deaf. But the part
of the handler that is written in C runs at once, and writes the signal's number into a pipe
(`signal.set_wakeup_fd`). This process reads that pipe. It passes the number back, to a thread that does not
depend on the main one, and when the command is still there after the grace period and a margin, it kills it
and all that it started. That is safe: the ledger survives a kill at any moment.

Run as a file, with the standard library alone. Its arguments: the command's process number, and how many
seconds after the first signal, and after a second one, it kills.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

READY = b"."
ENDING = (signal.SIGINT, signal.SIGTERM)


def below(pid: int) -> list[int]:
    """The processes that one has started, and that those have; empty where the system does not tell."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # The name in parentheses may hold anything, so fields are counted from its end.
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
    found, wave = [], {pid}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave}
        found += sorted(wave)
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def watch(command: int, first_seconds: float, second_seconds: float) -> None:
    """Until the pipe's other end is closed, which it is when the command has ended in any way."""
    deadline: float | None = None
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([0], [], [], left)[0]:
            break
        numbers = os.read(0, 64)
        if not numbers:
            return
        for number in numbers:
            if number in ENDING:
                limit = first_seconds if deadline is None else second_seconds
                ends = time.monotonic() + limit
                deadline = ends if deadline is None else min(deadline, ends)
                with contextlib.suppress(OSError):
                    os.write(1, bytes([number]))
    started = [pid for pid in below(command) if pid != os.getpid()]
    with contextlib.suppress(OSError):
        os.write(
            2, b"Killed: it did not end by itself after the signal. What was committed is safe.\n"
        )
    kill([command, *started])


def main() -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)  # they mean the command
    os.write(1, READY)
    watch(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))


if __name__ == "__main__":
    main()
