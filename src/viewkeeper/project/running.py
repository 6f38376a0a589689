"""A run: one pipeline after the other under one lease, and what people ask of it in between.

A pipeline knows its views and sources from its beginning to its end. Whatever changes that (a source that
can't go on, a rebuild, views that were written anew) ends it in order and opens the next one, which goes on
from the ledger as after a restart; the lease, Spark and the sources' links are kept. While views are being
filled, the others move on.

A source that can't go on stops the views that read it. They keep their last state and say so; the others
are kept on.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from viewkeeper import run_events as ev
from viewkeeper.engine.router import not_kept
from viewkeeper.errors import SourceError, UsageError, ViewkeeperError, WarehouseError
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.live.auditing.auditor import Auditor
from viewkeeper.live.context import EpochReport, shortfall_event
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.live.reading.bulk_reading import RowsRead
from viewkeeper.live.standing import Standing
from viewkeeper.project.remembering import refuse_older
from viewkeeper.project.requests import (
    AUDIT,
    DONE,
    FAILED,
    NOTE,
    REBUILD,
    TAKEN,
    Request,
    Requests,
)
from viewkeeper.project.run_report import RunReport
from viewkeeper.project.settings import audit_settings_of, storage_of
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.checksums import LEDGER, Damaged
from viewkeeper.warehouse.head import OLDER
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.writer import Writer

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper

IDLE_WAIT_SECONDS = 0.2
# How often a run looks for requests, and how soon it tries a source again that was away in between.
REQUESTS_SECONDS = 0.2
AWAY_SECONDS = 1.0
# What an audit meets while its view takes a schema change.
SCHEMA_CHANGING = "schema-changing"
# How often it is looked at what the views do not show yet.
STANDING_SECONDS = 1.0
# What does not come again when a pipeline begins anew: from the ledger, where the views are at one cut.
BEGIN_AGAIN = ("schema-changed-while-uniting",)


class Running:
    """One run of a keeper. Use it once."""

    def __init__(self, keeper: Keeper, on_event: ev.OnEvent, stop: threading.Event) -> None:
        self._keeper = keeper
        self._on_event = on_event
        self._stop = stop
        self._requests = Requests(keeper.config.folder)
        self._looked_at = 0.0
        self._auditor = Auditor(audit_settings_of(keeper.config), keeper.config.folder)
        # Views whose source can't go on, and why.
        self._resting: dict[str, SourceError] = {}
        # A request that waits for the end of the pipeline, and the one that the next one carries out.
        self._next: Request | None = None
        self._doing: tuple[Request, tuple[str, ...], float] | None = None
        # What was last told of what is not shown, by any of its pipelines.
        self._standing = Standing()
        # What was told of views that do not reach their level.
        self._shortfalls: set[str] = set()
        self._report = RunReport()
        self._until_caught_up = False
        self._deadline: float | None = None

    def run(self, *, until_caught_up: bool, for_seconds: float | None) -> RunReport:
        """As `Keeper.run`."""
        self._until_caught_up = until_caught_up
        self._tell_older()
        with self._keeper.writer() as writer:
            self._tell_not_kept()
            self._requests.forget_old()
            self._for_seconds = for_seconds
            while self._kept(writer):
                pass
        for error in (*self._resting.values(), *self._not_kept().values()):
            raise error
        return self._report

    def _tell_older(self) -> None:
        """Say it when the warehouse is an older copy: this run goes on from there."""
        config = self._keeper.config
        storage = storage_of(config)
        try:
            if Ledger.exists(storage):
                refuse_older(config.folder, storage)
        except WarehouseError as error:
            if error.code != OLDER:
                raise
            told = f"{error.message}: the run goes on from there"
            self._on_event(ev.Warned(told, error=error.as_dict()))

    def _not_kept(self) -> dict[str, ViewkeeperError]:
        """Views whose text is wrong, or does not fit, or whose files are damaged: they stop alone, at the
        state that they have."""
        return {**self._keeper.bad_views, **self._keeper.stopped_views}

    def _tell_not_kept(self) -> None:
        for name, error in self._not_kept().items():
            self._on_event(ev.ViewsStopped((name,), error.as_dict()))

    # -- one pipeline -----------------------------------------------------------------------------

    def _kept(self, writer: Writer) -> bool:
        """Keep the views with one pipeline; whether there is to be another one."""
        try:
            with self._keeper.pipeline_of(
                writer,
                self._on_event,
                heeds_periods=not self._until_caught_up,
                resting={name: error.source for name, error in self._resting.items()},
            ) as pipeline:
                self._tell_shortfalls(pipeline)
                with self._standing_told(pipeline):
                    loaded(pipeline, self._on_event, self._stop)
                    self._answer_done(writer)
                    goes_on = self._until_over(pipeline)
                if not goes_on:
                    self._on_event(self._report.as_event())
                    return False
            if self._next is not None:
                request, self._next = self._next, None
                self._carry_out(request)
            return True
        except SourceError as error:
            if error.code in BEGIN_AGAIN:
                told = f"{error.message}: the run begins again"
                self._on_event(ev.Warned(told, error=error.as_dict()))
            elif not error.retryable:
                self._rest(error)
            elif self._until_caught_up:
                raise
            else:
                self._on_event(ev.SourceWentAway(error.as_dict()))
                self._stop.wait(AWAY_SECONDS)
            return not self._stop.is_set()
        except Damaged as error:
            if error.whose == LEDGER or error.whose in writer.damaged:
                raise
            # Found while the view's manager read it: the others go on without it.
            writer.damaged[error.whose] = error
            self._on_event(ev.ViewsStopped((error.whose,), error.as_dict()))
            self._keeper.take_anew({})
            return not self._stop.is_set()

    def _tell_shortfalls(self, pipeline: Pipeline) -> None:
        """Which views are kept at a lower level than they declare, once for each reason."""
        for view in pipeline.views.values():
            if view.shortfall is not None and view.shortfall not in self._shortfalls:
                self._shortfalls.add(view.shortfall)
                self._on_event(shortfall_event(view))

    @contextlib.contextmanager
    def _standing_told(self, pipeline: Pipeline) -> Iterator[None]:
        """Tell what is not shown while the pipeline goes, also when nothing else happens.

        From a thread: loading or auditing a view keeps the run's own busy for as long as it takes.
        """
        over = threading.Event()

        def tell() -> None:
            while True:
                found = pipeline.standing().late(dt.datetime.now(dt.UTC))
                if found != self._standing:
                    self._standing = found
                    self._on_event(found.as_event())
                if over.wait(STANDING_SECONDS):
                    return

        teller = threading.Thread(target=tell, name="standing", daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()

    def _until_over(self, pipeline: Pipeline) -> bool:
        """Report what the pipeline does, until the run is over or another pipeline is needed (True)."""
        targets = pipeline.committed_now() if self._until_caught_up else {}
        if self._for_seconds is not None and self._deadline is None:
            self._deadline = time.monotonic() + self._for_seconds
        painted: list[dict[str, Any]] = []
        while not self._stop.is_set():
            if self._deadline is not None and time.monotonic() >= self._deadline:
                break
            if self._is_asked(pipeline):
                return True
            epoch = self._next_epoch(pipeline)
            paintings = pipeline.paintings()
            if paintings != painted:
                painted = paintings
                self._on_event(ev.PaintingChanged(tuple(painted)))
            if epoch is not None:
                self._report.add(epoch)
                self._on_event(epoch.as_event(dt.datetime.now(dt.UTC)))
            elif self._until_caught_up:
                if pipeline.has_applied(targets):
                    self._report.is_caught_up = True
                    break
                refuse_to_wait(pipeline)
            if self._auditor.is_due and not self._until_caught_up:
                audit = self._auditor.audit(pipeline, self._keeper.warehouse())
                if audit is not None:
                    self._on_event(audit)
        return False

    def _next_epoch(self, pipeline: Pipeline) -> EpochReport | None:
        try:
            return pipeline.cycle(IDLE_WAIT_SECONDS)
        except SourceError as error:
            if not error.retryable:
                raise
            self._on_event(ev.SourceWentAway(error.as_dict()))
            return None

    # -- a source that can't go on ----------------------------------------------------------------

    def _rest(self, error: SourceError) -> None:
        """Go on without the views over a source; raises the error when that leaves none."""
        kept = [name for name in self._kept_views() if name not in self._resting]
        stopped = [name for name in self._over(error.source) if name in kept]
        told = error.as_dict()
        self._on_event(ev.ViewsStopped(tuple(stopped), told))
        if self._doing is not None:
            request, _, _ = self._doing
            self._requests.answer(request, FAILED, told)
            self._doing = None
        if self._until_caught_up or not stopped or len(stopped) == len(kept):
            raise error
        self._resting |= dict.fromkeys(stopped, error)
        self._keeper.take_anew({})

    def _kept_views(self) -> list[str]:
        others = {*self._keeper.virtual_views, *self._keeper.bad_views}
        return [name for name in self._keeper.views if name not in others]

    def _over(self, source: str) -> tuple[str, ...]:
        views = self._keeper.views
        return tuple(n for n in self._kept_views() if source in views[n].definition.sources)

    # -- requests ---------------------------------------------------------------------------------

    def _is_asked(self, pipeline: Pipeline) -> bool:
        """Whether somebody asks for what needs another pipeline; it is `_next` then.

        An audit needs none, and is done at once; so is a note of a position.
        """
        now = time.monotonic()
        if self._until_caught_up or now - self._looked_at < REQUESTS_SECONDS:
            return False
        self._looked_at = now
        waiting = self._requests.waiting()
        for request in waiting:
            if request.kind == AUDIT:
                self._audit(pipeline, request)
            elif request.kind == NOTE:
                self._note(pipeline, request)
        waiting = [request for request in waiting if request.kind not in (AUDIT, NOTE)]
        self._next = waiting[0] if waiting else None
        return bool(waiting)

    def _note(self, pipeline: Pipeline, request: Request) -> None:
        """Passed on at every look until the ledger has it: groups may have become others meanwhile."""
        try:
            source = self._keeper.config.source(request.source or "").name
            if source not in pipeline.sources or pipeline.note(source, request.position or {}):
                self._requests.answer(request, DONE, {})
        except ViewkeeperError as error:
            self._requests.answer(request, FAILED, error.as_dict())

    def _audit(self, pipeline: Pipeline, request: Request) -> None:
        """Compare views with their sources; each one's group rests meanwhile, the others go on."""
        self._requests.answer(request, TAKEN, {})
        try:
            kept = [name for group in pipeline.groups for name in group.scope.views]
            for name in request.views:
                self._keeper.known_view(name)
                if name not in kept:
                    raise not_kept(name)
            warehouse = self._keeper.warehouse()
            found = [audit_view(pipeline, warehouse, name) for name in request.views or kept]
        except ViewkeeperError as error:
            if error.code == SCHEMA_CHANGING and pipeline.waiting_for_decision is None:
                return  # the views take the change at once: done at one of the next looks
            self._requests.answer(request, FAILED, error.as_dict())
        else:
            self._requests.answer(request, DONE, {"views": [each.as_dict() for each in found]})

    def _carry_out(self, request: Request) -> None:
        """Prepare the next pipeline for a request; what is wrong with it, only its sender hears."""
        keeper = self._keeper
        self._requests.answer(request, TAKEN, {})
        try:
            if request.kind != REBUILD:
                broken = {error.source for error in self._resting.values()}
                keeper.take_written(look_again=set(keeper.config.sources) - broken)
                self._resting = {n: e for n, e in self._resting.items() if n in keeper.views}
                self._doing = request, (), time.monotonic()
                return
            views = self.rebuildable(request)
            causes = {e.source: e for n, e in self._resting.items() if n in views}
            reason = rebuild_reason(request, causes.values())
            if request.source is not None:
                keeper.reopen_source(request.source, allow_setup=request.allow_setup)
            broken = {error.source for error in self._resting.values()} - {request.source}
            look_again = set(keeper.config.sources) - (broken - causes.keys())
            keeper.take_anew(dict.fromkeys(views, reason), look_again=look_again)
            self._resting = {n: e for n, e in self._resting.items() if n not in views}
            self._doing = request, views, time.monotonic()
        except ViewkeeperError as error:
            self._requests.answer(request, FAILED, error.as_dict())

    def rebuildable(self, request: Request) -> tuple[str, ...]:
        """The views that are meant; raises UsageError when they can't be rebuilt alone."""
        if request.source is not None:
            self._keeper.config.source(request.source)
            return self._over(request.source)
        for name in request.views:
            error = self._resting.get(name)
            others = [n for n, e in self._resting.items() if error is not None and e is error]
            if error is not None and not set(others) <= set(request.views):
                raise source_first(name, error)
        return request.views

    def _answer_done(self, writer: Writer) -> None:
        if self._doing is None or self._stop.is_set():
            return
        request, views, started = self._doing
        self._doing = None
        self._keeper.take_anew({})
        latest = writer.latest
        done = ev.ViewsRebuilt(
            views or tuple(self._keeper.views),
            latest.epoch,
            latest.last_txn,
            round(time.monotonic() - started, 3),
        )
        told = done.as_fields()
        stopped = [*self._resting, *self._not_kept()]
        self._on_event(done if views else ev.ViewsReloaded.of(told | {"stopped": stopped}))
        self._requests.answer(request, DONE, told)


def caught_up(pipeline: Pipeline) -> None:
    """Return when all that is committed now is in the warehouse; raises what keeps it from that."""
    targets = pipeline.committed_now()
    while not pipeline.has_applied(targets):
        if pipeline.cycle(IDLE_WAIT_SECONDS) is None:
            refuse_to_wait(pipeline)


def refuse_to_wait(pipeline: Pipeline) -> None:
    """A schema change that waits for approval keeps views back: say so instead of waiting, too."""
    waiting = pipeline.waiting_for_decision
    if waiting is not None:
        group, change = waiting
        raise ViewkeeperError(
            "waits-for-approval",
            f"a change of {change.source}.{change.relation} waits for your word",
            detail=f"until then {', '.join(sorted(group.scope.views))} can't catch up",
            hint="viewkeeper evolve shows what it does; approve or reject it, then run again",
        )


def source_first(view: str, error: SourceError) -> UsageError:
    """A view whose source is broken for others too."""
    return UsageError(
        "source-needs-rebuild",
        f"view {view} can't be rebuilt alone: its source {error.source} can't go on for others either",
        detail=error.message,
        hint=f"viewkeeper rebuild --source {error.source}",
    )


def rebuild_reason(request: Request, causes: Iterable[SourceError] = ()) -> str:
    """For the ledger: what was asked for, and what had happened."""
    named = request.source if request.source is not None else ", ".join(request.views)
    what = f"rebuild of {'source ' if request.source is not None else ''}{named}"
    return "; ".join([what, *(f"{error.message} [{error.code}]" for error in causes)])


def loaded(pipeline: Pipeline, on_event: ev.OnEvent, stop: threading.Event) -> None:
    """Set a pipeline going; returns when its new views are filled."""
    new = pipeline.new_views
    if not new:
        pipeline.load(stopping=stop.is_set)
        if not stop.is_set():
            # There may be nothing to do for long: whoever looks is to see that it is being done.
            txn = pipeline.writer.latest.last_txn
            on_event(ev.ViewsResumed(tuple(pipeline.views), txn))
        return
    on_event(ev.LoadingStarted(tuple(new)))
    started = time.monotonic()

    def read(name: RelationName, seen: RowsRead) -> None:
        on_event(ev.RelationRead(str(name), **seen.as_dict()))

    pipeline.load(read, stop.is_set)
    if stop.is_set():
        return
    seconds = round(time.monotonic() - started, 3)
    on_event(ev.ViewsLoaded(tuple(new), pipeline.writer.latest.last_txn, seconds))
