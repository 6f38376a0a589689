"""Consolidation, publishing, trimming and vacuum in a thread of their own, beside the commits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from viewkeeper.errors import ViewkeeperError
from viewkeeper.warehouse.consolidation import Amortisation, consolidate
from viewkeeper.warehouse.publishing import publish
from viewkeeper.warehouse.retention import Retention
from viewkeeper.warehouse.trimming import trim
from viewkeeper.warehouse.vacuum import vacuum
from viewkeeper.warehouse.writer import Writer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Housekeeping:
    """What the background does and how often."""

    amortisation: Amortisation = field(default_factory=Amortisation)
    retention: Retention = field(default_factory=Retention)
    consolidate_seconds: float = 1.0
    publish_seconds: float = 60.0
    trim_seconds: float = 60.0
    vacuum_seconds: float = 3_600.0


class Background:
    """Runs housekeeping until closed. A failure is kept in ``last_error`` and tried again later."""

    def __init__(self, writer: Writer, housekeeping: Housekeeping | None = None) -> None:
        self._writer = writer
        self._housekeeping = housekeeping or Housekeeping()
        self._closing = threading.Event()
        self.last_error: ViewkeeperError | None = None
        self._thread = threading.Thread(target=self._run, name="viewkeeper-warehouse", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        plan = self._housekeeping
        tasks: tuple[tuple[float, Callable[[], object]], ...] = (
            (plan.consolidate_seconds, self._consolidate),
            (plan.publish_seconds, lambda: publish(self._writer)),
            (plan.trim_seconds, lambda: trim(self._writer, plan.retention.grace_seconds)),
            (plan.vacuum_seconds, lambda: vacuum(self._writer, plan.retention)),
        )
        due = [time.monotonic() + seconds for seconds, _ in tasks]
        while not self._closing.wait(max(0.0, min(due) - time.monotonic())):
            for index, (seconds, task) in enumerate(tasks):
                if due[index] <= time.monotonic() and not self._closing.is_set():
                    self._attempt(task)
                    # Counted from its end, so that a slow task leaves room for the others.
                    due[index] = time.monotonic() + seconds

    def _consolidate(self) -> None:
        amortisation = self._housekeeping.amortisation
        behind = self._writer.is_behind()
        consolidate(self._writer, amortisation.put_off() if behind else amortisation)

    def _attempt(self, task: Callable[[], object]) -> None:
        try:
            task()
            self.last_error = None
        except ViewkeeperError as error:
            self.last_error = error
            log.warning("housekeeping of the warehouse failed, to be tried again: %s", error)

    def close(self) -> None:
        """Let the task at work finish, then stop. Close it before the writer.

        Plain tables are brought to the last state: no one comes later to do it.
        """
        self._closing.set()
        self._thread.join()
        self._attempt(lambda: publish(self._writer))
