"""A view manager at work: a thread that carries its protocol's questions out, one job at a time.

The managers of a group are independent of each other. One may be some jobs ahead of another; the merge
process sees to it that nobody notices.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import (
    AskSource,
    BatchClosed,
    InstallBatch,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.runtime.integrator import Arrival
from viewkeeper.runtime.jobs import Job
from viewkeeper.runtime.live_sweep import LiveSweep


@dataclass(frozen=True)
class ChangeComputed:
    """A view's part of a job is here, as an Arrow table: its columns, ``_txn``, ``_count``."""

    job: Job
    view: str
    table: Any


@dataclass(frozen=True)
class ManagerFailed:
    job: Job
    view: str
    error: BaseException


Report = Callable[[ChangeComputed | ManagerFailed], None]


@dataclass(frozen=True)
class _Arrived:
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True)
class _Begun:
    """Do the job; after it, all cuts reflect the sources' transactions up to ``settled``."""

    job: Job
    settled: Mapping[str, int]


class ManagerThread:
    """Runs one view's protocol. Everything reaches it through its inbox, in order."""

    def __init__(self, view: str, manager: LiveSweep, report: Report) -> None:
        self.view = view
        self.manager = manager
        self._report = report
        self._inbox: queue.SimpleQueue[_Arrived | _Begun | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"view-{view}", daemon=True)
        self._thread.start()

    def tell(self, arrivals: tuple[Arrival, ...]) -> None:
        """These transactions have arrived."""
        self._inbox.put(_Arrived(arrivals))

    def begin(self, job: Job, settled: Mapping[str, int]) -> None:
        self._inbox.put(_Begun(job, settled))

    def stop(self) -> None:
        """After what is in the inbox; whoever stops it no longer listens to its reports."""
        self._inbox.put(None)

    def _run(self) -> None:
        while (message := self._inbox.get()) is not None:
            try:
                self._take(message)
            except BaseException as error:
                if isinstance(message, _Begun):
                    self._report(ManagerFailed(message.job, self.view, error))
                break
        # It has failed: all its jobs will be given up, and must not wait for it.
        while message is not None and (message := self._inbox.get()) is not None:
            if isinstance(message, _Begun):
                with message.job.asking():
                    pass

    def _take(self, message: _Arrived | _Begun) -> None:
        if isinstance(message, _Arrived):
            for arrival in message.arrivals:
                self.manager.step(TransactionArrived(arrival.transaction))
            return
        self._do(message.job)
        for source, number in message.settled.items():
            # Every transaction of a batch was visible in a cut, so later cuts see it too.
            self.manager.step(SourceSettled(source, number))

    def _do(self, job: Job) -> None:
        with job.asking() as questions:
            self.manager.staging = questions.staging
            todo = deque(self.manager.step(BatchClosed(len(job.batch))))
            change = None
            while todo:
                match todo.popleft():
                    case AskSource() as question:
                        answer = questions.answer(question, self.manager.definition)
                        todo.extend(self.manager.step(answer))
                    case InstallBatch(change):
                        pass
                    case _:
                        invariant(False, f"{self.manager.name} wants what can't be done live")
        if self.view in job.concerned:
            self._report(ChangeComputed(job, self.view, _table(change)))


def _table(change: Any) -> Any:
    """A change as an Arrow table; where it is still Spark's to compute, it is computed here."""
    table = getattr(change, "table", None)
    return change.frame.toArrow() if table is None else table
