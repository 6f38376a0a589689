"""SIGTERM ends a run soon, whatever it is doing; what it was doing is done again by the next one.

No time is asserted, for a machine may be slow: how the run ended is. The time is printed, and
``make ending`` shows it. The limits add up to less than five seconds (unit/cli/test_ending.py).
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from chaos.run_process import java_below
from live.pipeline.test_ending import PATIENCE_SECONDS, Run, sell
from viewkeeper.cli import execute
from viewkeeper.cli.watchman import below
from viewkeeper.failpoints import REACHED, VARIABLE
from viewkeeper.reports.run_state import read_run_state
from viewkeeper.terminal import INTERRUPTED

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PAIRS = 30_000


@pytest.fixture
def folder(tmp_path, capsys):
    folder = tmp_path / "project"
    assert execute(["init", str(folder)]) == 0
    capsys.readouterr()
    return folder


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def terminated(run: Run, what: str) -> tuple[int, list[dict[str, object]]]:
    """How it ends by SIGTERM, with all that it had started."""
    started = below(run.process.pid)
    assert java_below(run.process.pid)
    began = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    run.process.wait(PATIENCE_SECONDS)
    print(f"{what}: ended after {time.monotonic() - began:.2f} s")  # noqa: T201
    until(lambda: all(is_gone(pid) for pid in started))
    return run.ended()


def goes_on(folder: Path) -> None:
    """The next run is refused by nobody, and brings everything in."""
    with Run(folder, "--until-caught-up", "--allow-setup") as run:
        code, events = run.ended()
    assert (code, events[-1].get("event")) == (0, "caught_up"), events[-1]


@pytest.mark.parametrize(
    ("point", "action"),
    [
        ("before-fill", "slow"),  # a load
        ("before-ledger:2", "slow"),  # a commit to a disk that does not answer
        (
            "before-fill",
            "hold",
        ),  # one call that keeps Python to itself, as a pattern that backtracks
        ("after-claim", "hold"),  # the same in the main thread
    ],
)
def test_sigterm_ends_a_run_that_stands_still(folder, tmp_path, monkeypatch, point, action):
    reached = tmp_path / "reached"
    monkeypatch.setenv(VARIABLE, f"{point}={action}")
    monkeypatch.setenv(REACHED, str(reached))
    with Run(folder, "--allow-setup") as run:
        if point == "before-ledger:2":
            run.until("loaded")
            sell(folder, 3)
        until(reached.exists)
        code, rest = terminated(run, f"{point}={action}")
    if action == "hold":
        assert code == -signal.SIGKILL
    else:
        assert code == INTERRUPTED
        assert rest[-1]["event"] == "interrupted"
    assert read_run_state(folder)["state"] in ("stopped", "never run")
    if point == "before-ledger:2":
        monkeypatch.delenv(VARIABLE)
        goes_on(folder)


def test_sigterm_ends_a_join_of_900_million_pairs(tmp_path):
    folder = project(
        tmp_path, "SELECT a.n AS n, b.n AS m FROM one.t a JOIN two.t b ON a.n + b.n < 7"
    )
    with Run(folder, "--allow-setup") as run:
        run.until("loading")
        time.sleep(5)  # wherever it is then: reading, or joining
        code, rest = terminated(run, "900 million pairs")
    assert code in (0, INTERRUPTED)
    assert rest[-1]["event"] in ("stopped", "interrupted")


def test_sigterm_ends_a_run_whose_source_does_not_answer(tmp_path):
    folder = project(tmp_path, "SELECT a.n AS n FROM one.t a")
    with (
        closing(sqlite3.connect(folder / "one.db", isolation_level=None)) as other,
        Run(folder, "--allow-setup") as run,
    ):
        run.until("loaded")
        other.execute("BEGIN EXCLUSIVE")
        code, _ = terminated(run, "a locked source")
    assert code in (0, INTERRUPTED)


def test_a_run_that_was_to_catch_up_and_was_stopped_does_not_say_that_it_has(
    folder, tmp_path, monkeypatch
):
    with Run(folder, "--until-caught-up", "--allow-setup") as run:
        assert run.ended()[0] == 0
    sell(folder, 4)
    monkeypatch.setenv(VARIABLE, "batch-closed=slow")
    monkeypatch.setenv(REACHED, str(tmp_path / "reached"))
    with Run(folder, "--until-caught-up") as run:
        until((tmp_path / "reached").exists)
        code, rest = terminated(run, "catching up")
    assert code == INTERRUPTED
    assert "caught_up" not in [line.get("event") for line in rest]


def test_a_second_run_is_refused_while_the_first_keeps_python_to_itself(
    folder, tmp_path, monkeypatch
):
    reached = tmp_path / "reached"
    monkeypatch.setenv(REACHED, str(reached))
    monkeypatch.setenv(VARIABLE, "before-fill=hold")
    with Run(folder, "--allow-setup") as first:
        until(reached.exists)
        monkeypatch.delenv(VARIABLE)
        with Run(folder, "--until-caught-up") as second:
            code, events = second.ended()
        assert (code, events[-1]["error"]["code"]) == (1, "warehouse-held")
        # Also for whoever sees no process of this machine: it beats on.
        (lease,) = folder.glob("**/_lease.json")
        before = json.loads(lease.read_text())["beat_at"]
        until(lambda: json.loads(lease.read_text())["beat_at"] != before)
        os.kill(first.process.pid, signal.SIGKILL)


def project(tmp_path: Path, view: str) -> Path:
    folder = tmp_path / "project"
    (folder / "views").mkdir(parents=True)
    for name in ("one", "two"):
        with closing(sqlite3.connect(folder / f"{name}.db")) as database, database:
            database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
            database.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(PAIRS)))
    (folder / "views" / "v.sql").write_text(view + "\n")
    (folder / "viewkeeper.toml").write_text(
        '[sources.one]\nurl = "sqlite:///one.db"\n[sources.two]\nurl = "sqlite:///two.db"\n'
    )
    return folder
