"""``viewkeeper run`` as a process: Ctrl-C and SIGTERM end it in order, and its log tells the story."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from chaos.run_process import java_below
from viewkeeper.cli import execute
from viewkeeper.terminal import INTERRUPTED

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PATIENCE_SECONDS = 600
# However slow the machine, it may end in order.
IN_ORDER = ("--grace", str(PATIENCE_SECONDS))


class Run:
    """A run in a process group of its own, as a shell starts it: Ctrl-C reaches all of the group."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "viewkeeper", "run", "--json", "--project", str(folder)]
        self.process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def until(self, name: str) -> dict[str, object]:
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == name:
                return event
        raise AssertionError(f"it ended before {name}: {self.process.stderr.read()}")

    def interrupt(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def ended(self) -> tuple[int, list[dict[str, object]]]:
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert "Traceback" not in err
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def folder(tmp_path, capsys):
    folder = tmp_path / "project"
    assert execute(["init", str(folder)]) == 0
    capsys.readouterr()
    return folder


def sell(folder: Path, quantity: int) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.execute("UPDATE orders SET quantity = ?", (quantity,))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_in_order_and_the_next_one_starts_at_once(number, folder):
    log = folder / "run.log"
    with Run(folder, "--allow-setup", "--log", str(log), *IN_ORDER) as run:
        run.until("loaded")
        sell(folder, 3)
        run.until("batch")
        run.interrupt(number)
        code, rest = run.ended()
    assert code == 0
    assert rest[-1]["event"] == "stopped"
    assert rest[-1]["transactions"] == 1
    assert json.loads((folder / ".viewkeeper" / "run.json").read_text())["state"] == "stopped"
    logged = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert (logged[0], logged[-1]) == ("loading", "stopped")
    sell(folder, 4)
    # Were the lease still held, this one would be refused.
    with Run(folder, "--until-caught-up") as run:
        code, events = run.ended()
    assert code == 0
    assert events[-1]["event"] == "caught_up"
    assert events[-1]["transactions"] == 1


def test_ctrl_c_before_anything_is_loaded_ends_it_too(folder):
    with Run(folder, "--allow-setup") as run:
        run.until("loading")
        run.interrupt(signal.SIGINT)
        code, rest = run.ended()
    assert code in (0, INTERRUPTED)
    assert rest[-1]["event"] in ("stopped", "interrupted")
    with Run(folder, "--until-caught-up", "--allow-setup") as run:
        code, events = run.ended()
    assert code == 0, events[-1]


def test_a_run_whose_spark_is_killed_says_so_and_the_next_one_goes_on(
    folder, tmp_path, monkeypatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with Run(folder, "--allow-setup") as run:
        run.until("loaded")
        for pid in java_below(run.process.pid):
            os.kill(pid, signal.SIGKILL)
        sell(folder, 3)
        code, rest = run.ended()
    assert code == 1
    assert rest[-1]["error"]["code"] == "spark-lost"
    assert list(temporary.glob("viewkeeper-*")) == []
    with Run(folder, "--until-caught-up") as run:
        code, events = run.ended()
    assert (code, events[-1]["transactions"]) == (0, 1)


def test_a_run_that_has_nothing_to_do_is_running(folder, capsys):
    """It stayed ``starting`` until the first change came, and was not well until then."""
    with Run(folder, "--until-caught-up", "--allow-setup") as run:
        assert run.ended()[0] == 0
    with Run(folder) as run:
        run.until("ready")
        code = execute(["status", "--check", "--json", "--project", str(folder)])
        found = json.loads(capsys.readouterr().out)
    assert (code, found["state"], found["problems"]) == (0, "running", [])
