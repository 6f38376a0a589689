"""The storm: round after round of actions, and after each one everything must be right.

A round: writers write, actions happen, are undone; the writers pause; the views must get to what the
sources have; then every state that was shown is judged, and the sources are looked at.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos import harm
from chaos.actions.action import Action, Permanent, Rig
from chaos.choosing import Round, rounds
from chaos.judging import has_converged, judge
from chaos.run_process import RunProcess
from chaos.witness import Witness
from chaos.world import World
from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.views import Level

# How long views may take to get to their sources after a fault. Far more than they need: a machine may
# be busy, and a test must not fail for that. What they needed is in the report.
CONVERGENCE_SECONDS_MAX = 400.0
# One that is built wrong may never get there, and must not take all that time.
WRONG_CONVERGENCE_SECONDS_MAX = 120.0
NOTICE_SECONDS_MAX = 240.0
REBUILD_SECONDS_MAX = 360
# Killed, ended in order, or left after a signal because that took too long: on a busy machine it may.
RUN_ENDED_BY_US = (-9, 0, 130)


@dataclass
class Report:
    """What happened, for people and programs."""

    seed: int
    seconds: float = 0.0
    rounds: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    transactions: int = 0
    states: int = 0
    epochs: int = 0
    run_starts: int = 0
    named_errors: Counter[str] = field(default_factory=Counter)
    convergence_seconds: list[float] = field(default_factory=list)
    stall_seconds_max: float = 0.0
    memory_bytes_max: dict[str, int] = field(default_factory=dict)
    log_bytes_max: int = 0
    violations: list[str] = field(default_factory=list)
    action_log: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        waits = sorted(self.convergence_seconds)
        return self.__dict__ | {
            "actions": dict(sorted(self.actions.items())),
            "faults": dict(sorted(self.faults.items())),
            "named_errors": dict(sorted(self.named_errors.items())),
            "convergence_seconds": {
                "median": round(waits[len(waits) // 2], 1) if waits else None,
                "most": round(waits[-1], 1) if waits else None,
            },
            "seconds": round(self.seconds, 1),
            "stall_seconds_max": round(self.stall_seconds_max, 2),
        }


class Storm:
    """One storm over one world. ``tell`` is called with lines for people."""

    def __init__(
        self,
        seed: int,
        actions: Sequence[type[Action]],
        *,
        bulk_rows: int,
        tell: Callable[[str], None] = lambda line: None,
        module: str = "chaos.run_under_test",
        patience_seconds: float = CONVERGENCE_SECONDS_MAX,
    ) -> None:
        self.report = Report(seed)
        self._seed = seed
        self._actions = actions
        self._bulk_rows = bulk_rows
        self._tell = tell
        self._module = module
        self._patience_seconds = patience_seconds
        self._ending = threading.Event()

    def rage(self, seconds: float, rounds_max: int | None = None) -> Report:
        """For so long, or until something is wrong; a round that has begun is finished.

        The time begins when the views are filled, and there is always one round: however long a busy
        machine takes to get there, a storm that saw nothing would prove nothing.
        """
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="viewkeeper-chaos-") as name:
            folder = Path(name)
            world = World(folder)
            run = RunProcess(world.project, (self._module,))
            witness = None
            try:
                witness = Witness(world, self._seed)
                rig = Rig(world, witness, run, self._ending, self._bulk_rows)
                self._begin(rig)
                for each in self._rounds(time.monotonic(), seconds, rounds_max):
                    self._round(rig, each)
                    self.report.seconds = time.monotonic() - started
                    if self.report.violations:
                        break
                if not self.report.violations:
                    self._end(rig)
            finally:
                self._figures(run, witness)
                self.report.seconds = time.monotonic() - started
                run.close()
                if witness is not None:
                    witness.close()
                world.close()
                if self.report.violations:
                    self._tell(_tail(folder / "run.log"))
                    self._tell(_tail(folder / "run.stderr"))
                if keep := os.environ.get("CHAOS_KEEP"):
                    shutil.copytree(folder, keep, dirs_exist_ok=True)
        return self.report

    def _rounds(self, started: float, seconds: float, rounds_max: int | None) -> Iterator[Round]:
        for each in rounds(self._seed, self._actions):
            if each.number > 1 and time.monotonic() - started >= seconds:
                return
            if rounds_max is not None and each.number > rounds_max:
                return
            yield each

    # -- beginning and end --------------------------------------------------------------------------

    def _begin(self, rig: Rig) -> None:
        """Sources set up, views filled, nobody writing yet."""
        rig.run.start(allow_setup=True)
        if self._converge(rig, "at the beginning"):
            rig.first_txn = rig.world.warehouse.latest().last_txn
        self._tell(f"seed {self._seed}: the views are filled")

    def _end(self, rig: Rig) -> None:
        """An orderly end: exit code 0, and nothing of ours is left at the sources."""
        rig.run.stop()
        ending = rig.run.endings[-1]
        if ending.status != 0:
            self._wrong(f"an orderly stop ended with {ending}")
        left = rig.world.tear_down_sources()
        if left:
            self._wrong(f"after teardown the sources still have {', '.join(left)}")

    def _figures(self, run: RunProcess, witness: Witness | None) -> None:
        self.report.run_starts = run.starts
        self.report.epochs = run.batches
        self.report.memory_bytes_max = dict(run.rss_max)
        if witness is not None:
            self.report.transactions = witness.transactions
            self.report.stall_seconds_max = witness.stall_seconds_max

    # -- a round ------------------------------------------------------------------------------------

    def _round(self, rig: Rig, each: Round) -> None:
        self.report.rounds += 1
        self.report.action_log.append(str(each))
        self._tell(f"{time.strftime('%H:%M:%S')} {each}")
        for action in each.actions:
            self.report.actions[action.name] += 1
            self.report.faults[action.kind] += 1
        rig.witness.resume()
        try:
            self._happen(rig, each)
        finally:
            rig.witness.pause()
        if self.report.violations:
            return
        level = min((action.level for action in each.actions), default=Level.COMPLETE)
        if self._converge(rig, str(each), each.actions):
            self._judge(rig, each, level)

    def _happen(self, rig: Rig, each: Round) -> None:
        done: list[Action] = []
        try:
            for action in each.actions:
                done.append(action)
                action.do(rig)
            rig.witness.await_commits(each.commits, 30)
            rig.run.measure()
            first = each.actions[0]
            if isinstance(first, Permanent):
                self._noticed(rig, first)
        except AssertionError as error:
            self._wrong(f"{each}: {error}")
        finally:
            with contextlib.ExitStack() as undoing:  # in the other order, and all of them
                for action in done:
                    undoing.callback(action.undo, rig)
        if isinstance(each.actions[0], Permanent) and not self.report.violations:
            self._rebuilt(rig, each.actions[0])
        self._endings(rig, each.actions)

    def _endings(self, rig: Rig, actions: Sequence[Action]) -> None:
        """Whether `run` ended only as it may, and start it again where it did."""
        allowed = {code for action in actions for code in action.may_end_with}
        rig.run.await_end(0)
        for ending in rig.run.endings:
            if ending.error:
                self.report.named_errors[ending.error] += 1
            if ending.status not in RUN_ENDED_BY_US and ending.error not in allowed:
                self._wrong(f"run ended by itself: {ending}")
        rig.run.endings.clear()
        for error in rig.run.stopped:
            self.report.named_errors[str(error["code"])] += 1
            if error["code"] not in allowed:
                self._wrong(
                    f"views were stopped: {error['code']} {error['message']} {error['detail']}"
                )
        rig.run.stopped.clear()
        rig.run.start()

    # -- faults that only people can mend -----------------------------------------------------------

    def _noticed(self, rig: Rig, action: Permanent) -> None:
        """The gap must be named, by the run and by `status`, before anybody does something."""
        code = rig.run.await_stop_of_views(NOTICE_SECONDS_MAX)
        if code not in action.may_end_with:
            said = code or "no error"
            self._stuck(rig, f"{action}: {said} instead of one of {sorted(action.may_end_with)}")
            return
        status = _command(rig, "status", "--check")
        if status.returncode != 1:
            self._wrong(f"{action}: status finds nothing wrong")

    def _rebuilt(self, rig: Rig, action: Permanent) -> None:
        """What was shown until now is judged; then a new history begins with a rebuild."""
        rig.witness.pause()
        self._add(rig, Level.STRONG, without=action.source)
        rig.run.start()
        rig.witness.begin_history()
        rig.witness.resume()
        seconds = str(REBUILD_SECONDS_MAX)
        words = ("rebuild", "--source", action.source, "--allow-setup", "--timeout", seconds)
        rebuilt = _command(rig, *words)
        if rebuilt.returncode != 0:
            said = f"{rebuilt.stdout[-600:]}{rebuilt.stderr[-300:]}"
            self._stuck(rig, f"{action}: rebuild failed: {said}")
            return
        rig.first_txn = json.loads(rebuilt.stdout.splitlines()[-1])["txn"]
        rig.witness.await_commits(5, 30)

    # -- after a round ------------------------------------------------------------------------------

    def _converge(self, rig: Rig, when: str, actions: Sequence[Action] = ()) -> bool:
        """Wait until the newest state has everything; the run may be at its start-up still."""
        started = time.monotonic()
        entry = None
        while time.monotonic() - started < self._patience_seconds:
            try:
                latest = rig.world.warehouse.latest() if rig.world.has_warehouse else None
                if latest is not None and latest.entry != entry:
                    entry = latest.entry
                    if self._is_there(rig):
                        self.report.convergence_seconds.append(time.monotonic() - started)
                        return True
            except UsageError:
                pass  # the warehouse is being made
            except ViewkeeperError as error:
                self._wrong(f"{when}: the warehouse can't be read: {error}")
                return False
            if not rig.run.is_alive or rig.run.stopped:
                self._endings(rig, actions)
                if self.report.violations:
                    return False
            self._ending.wait(0.2)
        rig.run.measure()
        self._stuck(
            rig, f"{when}: the views did not get to their sources in {self._patience_seconds} s"
        )
        return False

    def _is_there(self, rig: Rig) -> bool:
        try:
            return has_converged(rig.world.warehouse, rig.witness)
        except KeyError:
            return False  # not all views are filled

    def _judge(self, rig: Rig, each: Round, level: Level) -> None:
        self._endings(rig, each.actions)
        self._add(rig, level)
        for wrong in (*harm.found(rig.world), *rig.witness.errors, *harm.memory(rig.run)):
            self._wrong(f"{each}: {wrong}")
        self.report.log_bytes_max = max(self.report.log_bytes_max, harm.log_kept(rig.world))
        rig.witness.begin_history()
        rig.world.outages.clear()
        rig.first_txn = rig.world.warehouse.latest().last_txn

    def _add(self, rig: Rig, level: Level, *, without: str | None = None) -> None:
        judgement = judge(rig.world.warehouse, rig.witness, rig.first_txn, level, without=without)
        self.report.states += judgement.states
        for violation in judgement.violations:
            self._wrong(violation)

    def _stuck(self, rig: Rig, what: str) -> None:
        """Something did not come in time: the run says where all its threads are."""
        rig.run.signal(signal.SIGUSR2)
        self._ending.wait(1)
        self._wrong(what)

    def _wrong(self, violation: str) -> None:
        self.report.violations.append(violation)
        self._tell(f"VIOLATION {violation}")


def _command(rig: Rig, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "viewkeeper", *words, "--json", "--project", str(rig.world.project)],
        capture_output=True,
        text=True,
        timeout=600,
    )


def _tail(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[-12000:]
    except OSError:
        return ""
