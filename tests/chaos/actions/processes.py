"""What happens to `run` itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import ClassVar

from chaos.actions.action import Action, Rig
from viewkeeper.failpoints import RUN_POINTS

# Where a run with traffic comes by within seconds; recovery and consolidation have tests of their own.
POINTS = (
    "after-claim", "after-files", "after-table", "after-table:3", "before-ledger", "before-ledger:2",
    "after-ledger", "after-ledger:3",
    *(point for point in RUN_POINTS if point not in ("before-fill", "schema-taken")),
    "cuts-open:3", "batch-closed:2", "before-confirm:2",
)  # fmt: skip
REACH_SECONDS_MAX = 60.0


class Writing(Action):
    """Nothing but traffic."""

    name, kind, weight = "traffic", "none", 1.0

    def do(self, rig: Rig) -> None:
        pass


class KillRun(Action):
    """kill −9 at a moment that nobody chose."""

    name, kind, weight = "kill-run", "process", 2.0

    def draw(self) -> None:
        self.batches, self.then_seconds = self.rng.randrange(3), self.rng.random()

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.run.await_batches(self.batches, REACH_SECONDS_MAX)
        rig.wait(self.then_seconds)
        rig.run.kill()
        rig.run.start()


class KillAtPoint(Action):
    """kill −9 between two steps of a commit, or of the way to it."""

    name, kind, weight = "kill-at-point", "process", 3.0
    points: ClassVar[tuple[str, ...]] = POINTS

    def draw(self) -> None:
        self.point = self.rng.choice(self.points)

    def __str__(self) -> str:
        return f"{self.name} {self.point}"

    def do(self, rig: Rig) -> None:
        rig.run.kill()
        rig.run.start(self.point)
        if not rig.run.await_end(REACH_SECONDS_MAX):
            rig.run.kill()
        rig.run.start()


class DiskFull(Action):
    """No space left on the warehouse's device, at one of the writes of a commit."""

    name, kind, weight = "disk-full", "disk", 1.0
    may_end_with = frozenset({"disk-full"})

    def draw(self) -> None:
        self.point = self.rng.choice(
            ("after-files", "after-table", "before-ledger", "after-ledger")
        )

    def __str__(self) -> str:
        return f"{self.name} {self.point}"

    def do(self, rig: Rig) -> None:
        rig.run.kill()
        rig.run.start(f"{self.point}=full")
        rig.run.await_end(REACH_SECONDS_MAX)
        rig.run.start()


class StopRun(Action):
    """Stopped in order, and started again."""

    name, kind, weight = "stop-run", "process", 1.0

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.run.await_batches(1, REACH_SECONDS_MAX)
        rig.run.stop()
        rig.run.start()


class FreezeRun(Action):
    """The process stands still, as on a machine that was suspended, and goes on."""

    name, kind, weight = "freeze-run", "process", 1.0

    def draw(self) -> None:
        self.seconds = self.rng.uniform(1, 5)

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.run.await_batches(1, REACH_SECONDS_MAX)
        rig.run.signal(signal.SIGSTOP)
        rig.wait(self.seconds)

    def undo(self, rig: Rig) -> None:
        rig.run.signal(signal.SIGCONT)


class KillJava(Action):
    """Spark's JVM is killed under the run: it ends with an error, and the next one goes on."""

    name, kind, weight = "kill-java", "process", 0.5
    may_end_with = frozenset({"spark-lost"})

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.run.await_batches(1, REACH_SECONDS_MAX)
        for pid in rig.run.java_pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class SecondRun(Action):
    """Another `run` over the same project is refused, and the first one does not notice."""

    name, kind, weight = "second-run", "process", 0.7

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.run.await_batches(1, REACH_SECONDS_MAX)
        command = [sys.executable, "-m", "viewkeeper", "run", "--json", "--until-caught-up"]
        second = subprocess.run(
            [*command, "--project", str(rig.world.project)],
            capture_output=True,
            text=True,
            timeout=240,
        )
        said = second.stdout.splitlines()[-1:]
        error = json.loads(said[0]).get("error", {}) if said else {}
        # One that waits for nobody ends with that error, before it could ask for the warehouse.
        is_away = error.get("retryable", False) and rig.world.is_away(error["source"])
        is_refused = second.returncode == 1 and (error.get("code") == "warehouse-held" or is_away)
        if rig.run.is_alive and not is_refused:
            raise AssertionError(f"a second run was not refused: {second.returncode} {said}")


class Repeated(Action):
    """Everything since the last commit is delivered again, as after a lost connection."""

    name, kind, weight = "repeat-deliveries", "delivery", 1.5

    def do(self, rig: Rig) -> None:
        rig.run.start()
        for _ in range(3):
            if rig.run.await_batches(1, REACH_SECONDS_MAX):
                rig.run.signal(signal.SIGUSR1)


class ClockJump(Action):
    """The clock of the machine that keeps the views is suddenly wrong, and later right again."""

    name, kind, weight = "clock-jump", "clock", 1.0
    jumps: ClassVar = (-86_400.0, -3_600.0, -5.0, 5.0, 3_600.0, 30 * 86_400.0)

    def draw(self) -> None:
        self.seconds = self.rng.choice(self.jumps)

    def __str__(self) -> str:
        return f"{self.name} {self.seconds:+.0f} s"

    def do(self, rig: Rig) -> None:
        rig.run.start()
        rig.run.await_batches(1, REACH_SECONDS_MAX)
        rig.run.clock_file.write_text(str(self.seconds))
        rig.run.await_batches(2, REACH_SECONDS_MAX)

    def undo(self, rig: Rig) -> None:
        rig.run.clock_file.write_text("0")


ACTIONS = (
    Writing, KillRun, KillAtPoint, DiskFull, StopRun, FreezeRun, KillJava, SecondRun, Repeated,
    ClockJump,
)  # fmt: skip
