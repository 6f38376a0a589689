"""A signal ends a long command, whatever it computes and in which thread."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from viewkeeper.cli import ending, watchman
from viewkeeper.terminal import GOOD, INTERRUPTED

TESTS = Path(__file__).parents[2]
PATIENCE_SECONDS = 600
GRACE_SECONDS = 0.5


class Command:
    def __init__(self, what: str, grace_seconds: float = GRACE_SECONDS) -> None:
        search = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unit.cli.ending_program", what, str(grace_seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": search},
        )
        self.child = json.loads(self.process.stdout.readline())["child"]

    def ended(self, *numbers: int) -> tuple[int, list[str], str]:
        """Its status after these signals, what it said, and what it was told of on stderr."""
        started = time.monotonic()
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(0.1)  # two at once would be one
        try:
            out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            self.process.kill()
        print(f"ended after {time.monotonic() - started:.2f} s")  # noqa: T201  (for whoever measures)
        return self.process.returncode, [json.loads(x)["event"] for x in out.splitlines()], err


def is_gone(pid: int) -> bool:
    """Also when nobody has reaped it: its parent is dead, and who inherits it takes a moment."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "what", ["loops", "sleeps", "waits_in_c", "loops_in_a_thread", "waits_in_c_in_a_thread"]
)
@pytest.mark.thorough
def test_what_does_not_heed_a_signal_leaves_after_the_grace_period(what, number):
    command = Command(what)
    status, said, _ = command.ended(number)
    assert status == INTERRUPTED
    assert said == ["last words"]
    until(lambda: is_gone(command.child))


@pytest.mark.parametrize("what", ["backtracks", "backtracks_in_a_thread"])
def test_what_keeps_the_interpreter_to_itself_is_killed_from_outside(what):
    command = Command(what)
    status, said, told = command.ended(signal.SIGTERM)
    assert status == -signal.SIGKILL
    assert said == []
    assert "What was committed is safe" in told
    until(lambda: is_gone(command.child))


def test_what_ends_in_order_is_let_end_in_order():
    command = Command("stops", PATIENCE_SECONDS)
    assert command.ended(signal.SIGTERM)[:2] == (GOOD, ["stopped"])


def test_a_command_that_knows_of_no_stop_is_interrupted_at_once():
    command = Command("unwinds", PATIENCE_SECONDS)
    assert command.ended(signal.SIGTERM)[:2] == (INTERRUPTED, ["unwound"])


def test_a_thread_that_python_waits_for_at_its_end_does_not_keep_it():
    assert Command("lingers").ended(signal.SIGTERM)[:2] == (GOOD, ["stopped"])


def test_a_second_signal_does_not_wait_for_the_grace_period():
    status, said, _ = Command("sleeps", PATIENCE_SECONDS).ended(signal.SIGINT, signal.SIGINT)
    assert (status, said) == (INTERRUPTED, ["last words"])


def test_the_limits_leave_room_for_five_seconds():
    assert ending.GRACE_SECONDS + ending.LAST_WORDS_SECONDS < 4
    assert ending.GRACE_SECONDS + ending.WATCHMAN_SECONDS <= 4


def test_the_watchman_ends_with_its_command_and_handlers_are_given_back():
    before = [signal.getsignal(number) for number in watchman.ENDING]
    with ending.Ending() as guard:
        assert signal.getsignal(signal.SIGTERM) == guard._handle
        process = guard._watchman
        assert process.poll() is None
    assert process.poll() == 0
    assert [signal.getsignal(number) for number in watchman.ENDING] == before
    assert signal.set_wakeup_fd(-1) == -1
    command = Command("sleeps")
    others = [pid for pid in watchman.below(command.process.pid) if pid != command.child]
    assert len(others) == 1
    command.process.kill()
    until(lambda: is_gone(others[0]))
    os.kill(command.child, signal.SIGKILL)
    command.process.communicate()
