"""A batch on its way through a group's view managers: one job, shared by all of them."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewkeeper.engine.integrator import Arrival, transactions_in
from viewkeeper.engine.messages import StartJob
from viewkeeper.live.questions.shared_cuts import SharedCuts
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.spark.staged import Staging
from viewkeeper.spark.temporary import temporary_folder

# Spark's setting that carries it from the project to whoever stages.
STAGE = "spark.viewkeeper.stage"


class Stopwatch:
    """How long each phase took, one after the other."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


class StageFolder:
    """Where the tables of one job lie on their way to Spark; gone with the job.

    On a cluster that is below a folder which executors see, too; the session knows it.
    """

    def __init__(self, session: Any) -> None:
        parent = session.conf.get(STAGE, None)
        self.path = temporary_folder("stage", None if parent is None else Path(parent))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


@dataclass(eq=False)
class Job:
    """A batch that some views are brought over; ``serial`` names it in its group.

    It holds its cuts until the last view manager has asked what it needs.
    """

    serial: int
    batch: tuple[Arrival, ...]
    # The views that the batch changes, and all that have to take note of it.
    concerned: tuple[str, ...]
    told: tuple[str, ...]
    questions: Questions
    stage: StageFolder
    clock: Stopwatch
    _cuts: SharedCuts
    _asking: int = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._asking = len(self.told)

    @property
    def transactions(self) -> int:
        return transactions_in(self.batch)

    @property
    def rows(self) -> int:
        return sum(arrival.rows for arrival in self.batch)

    @contextlib.contextmanager
    def asking(self) -> Iterator[Questions]:
        """For a view manager to ask in; when the last one leaves, the cuts are released."""
        try:
            yield self.questions
        finally:
            with self._lock:
                self._asking -= 1
                last = not self._asking
            if last:
                self.clock.lap("ask")
                self._cuts.let_go()
                if not self.concerned:
                    self.stage.remove()  # it is never committed


def make_job(wanted: StartJob, held: SharedCuts, session: Any) -> Job:
    """A job at cuts that are held for it."""
    clock = Stopwatch()
    stage = StageFolder(session)
    staging = Staging(session, stage.path)
    questions = held.questions.in_earnest(wanted.reflected, staging, remembers=wanted.keeps)
    who = wanted.concerned, wanted.told
    return Job(wanted.job, wanted.batch, *who, questions, stage, clock, held)
