"""A view manager at work: a thread that does its jobs one after the other.

The managers of a group are independent of each other. One may be some jobs ahead of another; the merge
process sees to it that nobody notices.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from viewkeeper.runtime.integrator import Arrival
from viewkeeper.runtime.jobs import Job
from viewkeeper.runtime.live_managers import LiveManager, Tables


@dataclass(frozen=True)
class ChangeComputed:
    """A view's part of a job is here."""

    job: Job
    view: str
    tables: Tables


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
    """Runs one view's manager. Everything reaches it through its inbox, in order."""

    def __init__(self, view: str, manager: LiveManager, report: Report) -> None:
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
            self.manager.arrived(message.arrivals)
            return
        self._do(message.job)
        # Every transaction of a batch was visible in a cut, so later cuts see it too.
        self.manager.settled(message.settled)

    def _do(self, job: Job) -> None:
        tables = self.manager.maintain(job)
        if self.view in job.concerned:
            self._report(ChangeComputed(job, self.view, tables))
