"""A command under `Ending` that computes something; a child beside it, as Spark's JVM is beside a run.

``python -m unit.cli.ending_program WHAT GRACE``. Says ``begun`` and its child's number when it is at work.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from viewkeeper.cli.ending import Ending
from viewkeeper.terminal import GOOD, INTERRUPTED


def backtracks() -> None:
    """Keeps the interpreter's lock: no other thread of this process gets to run."""
    re.match("(a+)+$", "a" * 60 + "b")


def waits_in_c() -> None:
    """A C call that lets others run, but never comes back to the interpreter by itself."""
    import ctypes

    libc = ctypes.CDLL(None)
    while True:  # a sleep that a signal interrupts is slept again, as a loop in C would go on
        libc.usleep(100_000_000)


def loops() -> None:
    while True:
        sum(range(10_000))


def sleeps() -> None:
    time.sleep(3600)


def stops(ending: Ending) -> None:
    """Heeds the signal: what every command does where nothing keeps it from that."""
    ending.stop.wait()


def lingers() -> None:
    """A thread that Python waits for at its end."""
    ThreadPoolExecutor(1).submit(time.sleep, 3600)


WORK = {"backtracks": backtracks, "waits_in_c": waits_in_c, "loops": loops, "sleeps": sleeps}


def main() -> int:
    what, grace = sys.argv[1], float(sys.argv[2])
    # Where Python can be had, however slowly, it is not the watchman's business.
    margin = 0.5 if what.startswith("backtracks") else 600.0
    with Ending(grace, margin, raises=what == "unwinds") as ending:
        ending.last_words.append(lambda: say("last words"))
        # Not our pipes: whoever reads them is to see their end when we end.
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(3600)"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if what == "unwinds":
            try:
                say("begun", child=child.pid)  # a signal may come from here on
                sleeps()
            except KeyboardInterrupt:
                child.kill()
                say("unwound")
                raise SystemExit(INTERRUPTED) from None
        say("begun", child=child.pid)
        if what in ("stops", "lingers"):
            stops(ending)
            ending.code, ending.last_words = GOOD, []
            child.kill()
            say("stopped")
        elif what.endswith("_in_a_thread"):
            work = WORK[what.removesuffix("_in_a_thread")]
            threading.Thread(target=work, daemon=True).start()
            while True:
                time.sleep(1)
        else:
            WORK[what]()
    if what == "lingers":
        lingers()
    return GOOD


def say(event: str, **more: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
