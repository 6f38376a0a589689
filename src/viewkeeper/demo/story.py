"""The demo's story, told in events, from the first server to the last audit.

The run is a process of its own, as in real life, so that it can be killed. Whatever happens, all that
was started is ended and all that was written is removed, unless the user wants to keep it.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, TypeVar

from viewkeeper import run_events as ev
from viewkeeper.demo import events as demo
from viewkeeper.demo.figures import Figures
from viewkeeper.demo.interruption import Interruption
from viewkeeper.demo.processes import Command, Servers
from viewkeeper.demo.scenery import SCRATCH, SOURCES, Scene, rows_to_load, write_scene
from viewkeeper.demo.writers import Writers
from viewkeeper.errors import UsageError, ViewkeeperError

E = TypeVar("E", bound=ev.Event)

# A machine that is busy with other things is waited for, but not for ever.
PATIENCE_SECONDS = 180.0
POLL_SECONDS = 0.25

# The share of the time that is watched after the kill at least.
WATCHED_AFTER_RESUMING = 0.125

# In a folder that is to be kept: the demo has not come to its end.
UNFINISHED = ".unfinished"


def tell(on_event: demo.OnDemoEvent, *, seconds: float, keep: Path | None = None) -> bool:
    """The whole demo; whether everything came out right. ``keep``: where its project stays."""
    began = time.monotonic()
    with Interruption() as interruption, contextlib.ExitStack() as stack:
        folder = _folder(keep, stack)
        story = _Story(folder, on_event, interruption, stack)
        try:
            good = story.told(seconds)
        finally:
            interruption.ignore()  # a second Ctrl-C must not keep the first from ending everything
        if keep is not None:
            (folder / UNFINISHED).unlink()
    on_event(story.summary(good, time.monotonic() - began, keep))
    return good


def _folder(keep: Path | None, stack: contextlib.ExitStack) -> Path:
    if keep is None:
        folder = Path(tempfile.mkdtemp(prefix="viewkeeper-demo-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError("folder-not-empty", f"{keep} is not empty", hint="name a new folder")
    try:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / UNFINISHED).touch()
    except OSError as error:
        raise UsageError("not-writable", f"can't write to {keep}", detail=str(error)) from None
    stack.callback(_remove_leftovers, keep)
    return keep


def _remove_leftovers(folder: Path) -> None:
    """A project that stays is whole, and has no temporary files of processes that were killed."""
    is_whole = not (folder / UNFINISHED).exists()
    shutil.rmtree(folder / SCRATCH if is_whole else folder, ignore_errors=True)


class _Story:
    def __init__(
        self,
        folder: Path,
        on_event: demo.OnDemoEvent,
        interruption: Interruption,
        stack: contextlib.ExitStack,
    ) -> None:
        self._folder = folder
        self._on_event = on_event
        self._interruption = interruption
        self._stack = stack
        self._figures = Figures(SOURCES)
        self._audits: list[dict[str, Any]] = []
        self._committed: dict[str, int] = dict.fromkeys(SOURCES, 0)
        self._seconds_to_resume = 0.0

    def told(self, seconds: float) -> bool:
        """All steps in order; whether nothing was lost, nothing doubled, and every audit equal."""
        self._on_event(demo.DemoBegan(seconds, tuple(SOURCES)))
        scene = self._set_the_scene()
        self._open_dashboard(scene)
        writers = Writers(scene)
        self._stack.callback(writers.stop)
        run = self._first_run(scene, writers)
        deadline = time.monotonic() + seconds
        self._watch(run, writers, until=deadline - seconds / 2, batches=1)
        run = self._killed_and_resumed(scene, run, writers)
        # However long it took to come back, that it lives must be seen.
        a_while = time.monotonic() + seconds * WATCHED_AFTER_RESUMING
        self._watch(run, writers, until=max(deadline, a_while), batches=1)
        settled = self._settled(run, writers)
        good = self._audited(scene)
        self._on_event(demo.RunStopping(run.pid))
        run.stop()
        return good and settled

    def summary(self, good: bool, seconds: float, keep: Path | None) -> demo.DemoSummarized:
        return demo.DemoSummarized(
            **self._figures.as_dict(self._committed),
            ok=good,
            seconds=round(seconds, 1),
            seconds_to_resume=self._seconds_to_resume,
            audits={audit["view"]: audit["verdict"] for audit in self._audits},
            kept=None if keep is None else str(keep),
        )

    # -- the steps --------------------------------------------------------------------------------

    def _set_the_scene(self) -> Scene:
        with self._interruption.deferred():
            servers = Servers(self._interruption)
            self._stack.callback(servers.stop)
        self._tell_of_anomalies()  # while the servers start
        scene = write_scene(self._folder, servers.urls())
        self._on_event(demo.SourcesReady(tuple(scene.urls)))
        return scene

    def _open_dashboard(self, scene: Scene) -> None:
        """A process of its own too: it goes on telling while the run is dead."""
        dashboard = self._started(scene, "ui", "--port", "0")
        self._on_event(self._awaited(dashboard, ev.DashboardOpened))

    def _tell_of_anomalies(self) -> None:
        from viewkeeper.demo.anomaly import compared

        self._on_event(demo.AnomalyPlayed.of(compared()))

    def _first_run(self, scene: Scene, writers: Writers) -> Command:
        run = self._started(scene, "run", "--allow-setup")
        self._on_event(demo.RunStarted(run.pid))
        views = self._awaited(run, ev.LoadingStarted).views
        # The sources are set up and their positions noted: from here on every commit counts.
        writers.start()
        self._on_event(demo.DemoLoadingStarted(views, rows_to_load(scene, views)))
        rows = 0
        while not isinstance(
            event := self._awaited(run, ev.RelationRead, ev.ViewsLoaded), ev.ViewsLoaded
        ):
            if isinstance(event, ev.RelationRead):
                rows += event.rows
                self._on_event(demo.DemoRelationRead(event.relation, event.rows, rows))
        self._figures.take_stock(scene.folder / "warehouse")
        self._on_event(demo.DemoLoaded(event.seconds, dict(self._figures.rows)))
        return run

    def _watch(self, run: Command, writers: Writers, *, until: float, batches: int) -> None:
        """Tell of every batch until some moment, and until there have been so many at least."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while batches > 0 or time.monotonic() < until:
            event = run.next_event(POLL_SECONDS)
            if isinstance(event, ev.BatchCommitted):
                self._figures.add_batch(event)
                batches -= 1
                self._tell_figures(writers)
            _require_patience(patience, "a batch of changes")

    def _killed_and_resumed(self, scene: Scene, run: Command, writers: Writers) -> Command:
        run.kill()
        killed_at = time.monotonic()
        self._figures.take_stock(scene.folder / "warehouse")
        self._on_event(demo.RunKilled(run.pid, 9, self._figures.txn))
        run = self._started(scene, "run")
        self._on_event(demo.RunStarted(run.pid))
        batch = self._awaited(run, ev.BatchCommitted)
        self._seconds_to_resume = round(time.monotonic() - killed_at, 1)
        before = self._figures.txn
        self._figures.take_stock(scene.folder / "warehouse")
        self._figures.add_batch(batch)
        seconds = self._seconds_to_resume
        self._on_event(demo.RunResumed(run.pid, seconds, before, batch.transactions))
        self._tell_figures(writers)
        return run

    def _settled(self, run: Command, writers: Writers) -> bool:
        """The writers go home; every transaction of theirs must get a number, and none gets two."""
        writers.stop()
        self._committed = dict(writers.committed)
        total = sum(self._committed.values())
        self._on_event(demo.WritersStopped(self._committed, total))
        patience = time.monotonic() + PATIENCE_SECONDS
        while self._figures.txn < total and time.monotonic() < patience:
            event = run.next_event(POLL_SECONDS)
            if isinstance(event, ev.BatchCommitted):
                self._figures.add_batch(event)
                self._tell_figures(writers)
        exact = self._figures.txn == total
        self._on_event(demo.DemoSettled(total, self._figures.txn, exact))
        return exact

    def _audited(self, scene: Scene) -> bool:
        self._on_event(demo.AuditStarted(tuple(sorted(self._figures.rows))))
        audit = self._started(scene, "audit")
        patience = time.monotonic() + PATIENCE_SECONDS
        while (found := audit.next_document(POLL_SECONDS)) is None:
            _require_patience(patience, "the audit")
        self._audits = found["views"]
        audit.stop()
        self._on_event(demo.ViewsAudited(found["ok"], tuple(found["views"])))
        return bool(found["ok"])

    # -- the trade --------------------------------------------------------------------------------

    def _tell_figures(self, writers: Writers) -> None:
        self._on_event(demo.FiguresChanged(**self._figures.as_dict(writers.committed)))

    def _started(self, scene: Scene, *words: str) -> Command:
        with self._interruption.deferred():
            command = Command(scene, *words)
            # By force: what the demo leaves in the middle is thrown away with its folder.
            self._stack.callback(command.kill)
        return command

    def _awaited(self, run: Command, *wanted: type[E]) -> E:
        """The next event of some kinds; others are passed over."""
        patience = time.monotonic() + PATIENCE_SECONDS
        while True:
            event = run.next_event(POLL_SECONDS)
            if isinstance(event, wanted):
                return event
            _require_patience(
                patience, f"the run to say {' or '.join(each.name for each in wanted)}"
            )


def _require_patience(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise ViewkeeperError(
            "demo-too-slow",
            f"the demo waited {PATIENCE_SECONDS:.0f} s for {what} in vain",
            hint="try again when the machine has less to do",
        )
