"""A view manager at work: a thread that does its jobs one after the other.

The managers of a group are independent of each other. One may be some jobs ahead of another; the merge
process sees to it that no reader notices.

Where a view's jobs need nothing of each other, two managers do them alternately: while one waits for answers,
the other joins. What they found is reported in the order of the jobs.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.engine.integrator import Arrival
from viewkeeper.engine.messages import ChangeComputed, Failed
from viewkeeper.live.jobs import Job
from viewkeeper.live.managers.live import LiveManager
from viewkeeper.live.questions.message_counts import MessageCounts, counted_together

Report = Callable[[ChangeComputed | Failed], None]


@dataclass(frozen=True)
class _Arrived:
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True)
class _Begun:
    """Do the job; after it, all cuts reflect the sources' transactions up to ``settled``."""

    job: Job
    settled: Mapping[str, int]


@dataclass(frozen=True)
class _PassedOver:
    """Another manager of the view does the job."""

    job: Job
    settled: Mapping[str, int]


class ManagerThread:
    """Runs one view's manager. Everything reaches it through its inbox, in order."""

    def __init__(self, view: str, manager: LiveManager, report: Report) -> None:
        self.view = view
        self.manager = manager
        self._report = report
        self._inbox: queue.SimpleQueue[_Arrived | _Begun | _PassedOver | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"view-{view}", daemon=True)
        self._thread.start()

    def tell(self, arrivals: tuple[Arrival, ...]) -> None:
        """These transactions have arrived."""
        self._inbox.put(_Arrived(arrivals))

    def begin(self, job: Job, settled: Mapping[str, int]) -> None:
        self._inbox.put(_Begun(job, settled))

    def pass_over(self, job: Job, settled: Mapping[str, int]) -> None:
        """Another manager of the view does the job."""
        self._inbox.put(_PassedOver(job, settled))

    @property
    def counts(self) -> MessageCounts:
        """What the manager has sent and got since it began."""
        return self.manager.counts

    def stop(self) -> None:
        """After what is in the inbox; the caller no longer listens to its reports."""
        self._inbox.put(None)

    def _run(self) -> None:
        while (message := self._inbox.get()) is not None:
            try:
                self._take(message)
            except BaseException as error:
                if isinstance(message, _Begun):
                    self._report(Failed(error, message.job.serial))
                break
        # It has failed: all its jobs will be given up, and must not wait for it.
        while message is not None and (message := self._inbox.get()) is not None:
            if isinstance(message, _Begun):
                with message.job.asking():
                    pass

    def _take(self, message: _Arrived | _Begun | _PassedOver) -> None:
        if isinstance(message, _Arrived):
            self.manager.arrived(message.arrivals)
            return
        if isinstance(message, _PassedOver):
            self.manager.pass_over(message.job)
        else:
            self._do(message.job)
        # Every transaction of a batch was visible in a cut, so later cuts see it too.
        self.manager.settled(message.settled)

    def _do(self, job: Job) -> None:
        tables = self.manager.maintain(job)
        if self.view in job.concerned:
            self._report(ChangeComputed(job.serial, self.view, tables))


class AlternatingManagers:
    """Several managers of one view, each in its thread, that alternate on its jobs."""

    def __init__(self, view: str, managers: Sequence[LiveManager], report: Report) -> None:
        self.view = view
        self._report = report
        self._threads = [
            ManagerThread(view, manager, self._report_in_order) for manager in managers
        ]
        self._next = 0
        # Jobs that were begun and not told of, in order, and what was found for them so far.
        self._begun: deque[Job] = deque()
        self._found: dict[int, ChangeComputed] = {}
        self._lock = threading.Lock()

    def tell(self, arrivals: tuple[Arrival, ...]) -> None:
        for thread in self._threads:
            thread.tell(arrivals)

    def begin(self, job: Job, settled: Mapping[str, int]) -> None:
        if self.view in job.concerned:
            with self._lock:
                self._begun.append(job)
        for place, thread in enumerate(self._threads):
            if place == self._next:
                thread.begin(job, settled)
            else:
                thread.pass_over(job, settled)
        self._next = (self._next + 1) % len(self._threads)

    def stop(self) -> None:
        for thread in self._threads:
            thread.stop()

    @property
    def counts(self) -> MessageCounts:
        return counted_together(thread.counts for thread in self._threads)

    def _report_in_order(self, message: ChangeComputed | Failed) -> None:
        if isinstance(message, Failed):
            self._report(message)
            return
        with self._lock:
            self._found[message.job] = message
            while self._begun and self._begun[0].serial in self._found:
                self._report(self._found.pop(self._begun.popleft().serial))
