"""`Keeper`: a project opened for work. The command line and Python users hold the same thing.

```python
with viewkeeper.open("project") as keeper:
    keeper.run_until_caught_up()
    keeper.read("sales").show()
```
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from viewkeeper.engine.transaction_ties import Outbox, Units
from viewkeeper.engine.view import View
from viewkeeper.errors import SourceError, UsageError, ViewkeeperError, WarehouseError
from viewkeeper.live.auditing.audit import Audit, audit_view
from viewkeeper.live.context import Limits
from viewkeeper.live.evolution_log import EvolutionLog
from viewkeeper.live.pipeline import Pipeline
from viewkeeper.live.reading.virtual_views import refuse_past, rows_now
from viewkeeper.merging.global_transactions import GlobalTransactions, Overdue
from viewkeeper.project.config import read_project
from viewkeeper.project.open_project import OpenProject
from viewkeeper.project.querying import ROWS_MAX, SECONDS_MAX, Answer, answered
from viewkeeper.project.remembering import refuse_older, remember
from viewkeeper.project.requests import NOTE, Request, Requests
from viewkeeper.project.run_report import RunReport
from viewkeeper.project.running import AWAY_SECONDS, Running, caught_up, loaded, rebuild_reason
from viewkeeper.project.settings import limits_of, retention_of, spark_settings_of, storage_of
from viewkeeper.project.views_folder import (
    sources_used,
)
from viewkeeper.run_events import OnEvent, SourceWentAway, ignore
from viewkeeper.sources.interface import Position, Source
from viewkeeper.sources.urls import parse_source_url
from viewkeeper.spark.session import Spark, start_spark
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.background import Background, Housekeeping
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.warehouse import Warehouse
from viewkeeper.warehouse.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# How often a caller that waits for a position looks into the ledger.
INCLUDED_POLL_SECONDS = 0.2
LOST_WAIT_SECONDS = 2.0


class Keeper(OpenProject):
    """A project's sources, views and warehouse. Nothing is connected before it is needed."""

    @classmethod
    def open(cls, folder: str | Path, *, allow_setup: bool = False) -> Keeper:
        """The project in ``folder``; raises UsageError when its file is missing or wrong."""
        return cls(read_project(Path(folder)), allow_setup=allow_setup)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of sources and Spark."""
        self._resources.close()
        self._sources, self._spark = {}, None

    # -- what there is ----------------------------------------------------------------------------

    @property
    def spark(self) -> Spark:
        if self._spark is None:
            started = start_spark(spark_settings_of(self.config))
            self._spark = self._resources.enter_context(started)
        return self._spark

    def warehouse(
        self, *, with_spark: bool = True, session: SparkSession | None = None
    ) -> Warehouse:
        """The project's warehouse, for reading; raises UsageError when there is none yet.

        Raises WarehouseError for an older copy of what the project has seen.
        """
        if session is None and with_spark:
            session = self.spark.bulk
        storage = storage_of(self.config)
        Ledger.open(storage)
        refuse_older(self.config.folder, storage)
        return Warehouse(storage, session)

    def read(self, view: str, as_of: int | None = None) -> DataFrame:
        """A view's rows as a Spark DataFrame, at a transaction number or at the newest one.

        A virtual view is asked of its sources, and has a present only.
        """
        if view not in self.virtual_views:
            return self.warehouse().read(view, as_of)
        return self.read_virtual(view, as_of, self.spark.bulk)

    def read_virtual(self, view: str, as_of: int | None, session: SparkSession) -> DataFrame:
        """A virtual view's rows now, as a DataFrame of the session."""
        refuse_past(view, as_of)
        definition = self.views[view].definition
        sources = {name: self.source(name) for name in definition.sources}
        return session.createDataFrame(rows_now(definition, sources, session))

    def read_many(self, views: Iterable[str], as_of: int | None = None) -> dict[str, DataFrame]:
        """Several views at one cut of every source: the newest that all of them have passed."""
        return self.warehouse().read_many(views, as_of)

    def sql(
        self,
        text: str,
        as_of: int | None = None,
        *,
        rows_max: int = ROWS_MAX,
        seconds_max: float = SECONDS_MAX,
    ) -> Answer:
        """One SELECT over the views, all at one cut; it reaches nothing but them.

        Raises UsageError for anything else, and for what takes longer than ``seconds_max``.
        """
        try:
            return answered(self, text, as_of, rows_max, seconds_max)
        except ViewkeeperError:
            raise
        except Exception as error:
            if self._spark is not None and self._spark.is_lost(LOST_WAIT_SECONDS):
                raise _spark_lost(error, "query") from error
            raise

    # -- work -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def pipeline(
        self, on_event: OnEvent = ignore, *, heeds_periods: bool = True
    ) -> Iterator[Pipeline]:
        """The pipeline over all views that are kept, with the warehouse's lease held.

        Unless it heeds periods, periodic views are brought up to date at once.
        """
        with (
            self.writer() as writer,
            self.pipeline_of(writer, on_event, heeds_periods=heeds_periods) as pipeline,
        ):
            yield pipeline

    @contextlib.contextmanager
    def writer(self) -> Iterator[Writer]:
        """The warehouse's lease, and its housekeeping beside; created where there is none yet."""
        self.views  # noqa: B018  (what is wrong with them must be said before anything is made)
        housekeeping = Housekeeping(retention=retention_of(self.config))
        with (
            self._created_warehouse().writer(beats_apart=True) as writer,
            contextlib.closing(Background(writer, housekeeping)),
        ):
            writer.remember = partial(remember, self.config.folder, writer.storage)
            with contextlib.suppress(OSError):
                # It is this warehouse that the project goes on from, whatever it has seen before.
                writer.remember(writer.latest)
            self._damaged = writer.damaged
            yield writer

    @contextlib.contextmanager
    def pipeline_of(
        self,
        writer: Writer,
        on_event: OnEvent = ignore,
        *,
        heeds_periods: bool = True,
        resting: Mapping[str, str | None] | None = None,
    ) -> Iterator[Pipeline]:
        """A pipeline that commits through the writer, without the views that rest."""
        resting = self._left_alone() | dict(resting or {})
        left_out = {*self.virtual_views, *resting, *self.bad_views}
        evolution = self.evolution
        views = {name: view for name, view in self.views.items() if name not in left_out}
        watched = evolution.watched(views)
        names = (*sources_used(views.values()), *(name.source for name in watched))
        sources = {name: self.source(name) for name in dict.fromkeys(names)}
        if self.allow_setup:
            self._set_up(views, watched, sources)
        with Pipeline(
            views,
            sources,
            writer,
            self.spark,
            Limits(heeds_periods=heeds_periods, commits=self.config.commits),
            source_limits=limits_of(self.config),
            units=self._units(sources),
            evolution=evolution,
            log=EvolutionLog(self.config.folder),
            tell=on_event,
            rebuilt={name: reason for name, reason in self._rebuilt.items() if name in views},
            resting=resting,
        ) as pipeline:
            try:
                yield pipeline
            finally:
                if pipeline.has_evolved:
                    self._read = None  # the ledger has them as they became

    def _set_up(
        self,
        views: Mapping[str, View],
        watched: Iterable[RelationName],
        sources: Mapping[str, Source],
    ) -> None:
        relations = [*watched, *(r for v in views.values() for r in v.definition.relations)]
        for name, source in sources.items():
            used = {relation.relation for relation in relations if relation.source == name}
            outbox = self.config.source(name).outbox
            # What is gone by now, its feed will tell the views.
            there = (used | ({outbox} if outbox else set())) & source.schemas().keys()
            source.setup(sorted(there))

    def _units(self, sources: Mapping[str, Source]) -> Units:
        """What holds the parts of global transactions back."""
        outboxes = {}
        for name, source in sources.items():
            relation = self.config.source(name).outbox
            if relation is None and self.config.has_ties:
                source.expect_ties()
            if relation is not None:
                found = source.schemas([relation]).get(relation)
                if found is None:
                    raise UsageError(
                        "unknown-relation", f"source {name} has no relation {relation}, its outbox"
                    )
                outboxes[name] = Outbox(relation, found.schema)
        config = self.config
        machine = GlobalTransactions(config.tie_timeout_seconds, Overdue(config.tie_overdue))
        return Units(machine, outboxes)

    def _created_warehouse(self) -> Warehouse:
        storage = storage_of(self.config)
        if Ledger.exists(storage):
            return Warehouse(storage, self.spark.bulk)
        path, options = self.config.warehouse_path, self.config.warehouse_options
        if self.config.group_readable and storage_of(self.config).is_local:
            os.makedirs(storage_of(self.config).root, mode=0o750, exist_ok=True)
        return Warehouse.create(path, options, spark=self.spark.bulk)

    def await_views(
        self, on_event: OnEvent, stop: threading.Event, seconds_max: float | None = None
    ) -> None:
        """Read the views, and wait for sources that are away, saying so each time.

        Returns without them when it is to stop. Raises SourceError for what waiting does not mend, and
        after ``seconds_max``.
        """
        started = time.monotonic()
        while not stop.is_set():
            try:
                self.views  # noqa: B018  (needs every source)
                return
            except SourceError as error:
                waited = time.monotonic() - started
                is_over = seconds_max is not None and waited >= seconds_max
                if not error.retryable or is_over or self._lacks_file(error.source):
                    raise
                on_event(SourceWentAway(error.as_dict()))
            stop.wait(AWAY_SECONDS)

    def _lacks_file(self, source: str) -> bool:
        """Whether a source is a file that is not there: more likely a wrong path than one to come."""
        url = parse_source_url(self.config.source(source).url, source)
        return url.kind == "sqlite" and not Path(url.database).is_file()

    def run(
        self,
        *,
        until_caught_up: bool = False,
        for_seconds: float | None = None,
        on_event: OnEvent = ignore,
        stop: threading.Event | None = None,
    ) -> RunReport:
        """Keep the views: for ever, until all that is committed now is in, or for some time.

        A source that is away is waited for. Raises SourceError for what only people can mend.
        """
        stop = stop or threading.Event()
        self.await_views(on_event, stop, 0.0 if until_caught_up else for_seconds)
        if self._read is None:
            return RunReport()  # it was stopped before there was anything to keep
        running = Running(self, on_event, stop)
        try:
            return running.run(until_caught_up=until_caught_up, for_seconds=for_seconds)
        except (SourceError, WarehouseError):
            raise
        except Exception as error:
            if self._spark is not None and self._spark.is_lost(LOST_WAIT_SECONDS):
                raise _spark_lost(error) from error
            raise

    def run_until_caught_up(self, on_event: OnEvent = ignore) -> RunReport:
        """Bring everything in that is committed at the sources now."""
        return self.run(until_caught_up=True, on_event=on_event)

    # -- what a run changes its mind about ---------------------------------------------------------

    def rebuild(self, request: Request, on_event: OnEvent = ignore) -> dict[str, Any]:
        """Fill views anew while nobody else keeps them; the other views stay as they are.

        Raises WarehouseError ``warehouse-held`` when somebody does.
        """
        views = self._meant(request)
        started = time.monotonic()
        with self.writer() as writer:
            if request.source is not None:
                self.reopen_source(request.source, allow_setup=request.allow_setup)
            reason = rebuild_reason(request)
            self.take_anew(dict.fromkeys(views, reason), look_again=self.config.sources)
            others = {name: request.source for name in self.views if name not in views}
            with self.pipeline_of(writer, on_event, resting=others) as pipeline:
                loaded(pipeline, on_event, threading.Event())
            latest = writer.latest
        self.take_anew({})
        seconds = round(time.monotonic() - started, 3)
        return {
            "views": list(views),
            "epoch": latest.epoch,
            "txn": latest.last_txn,
            "seconds": seconds,
        }

    def _meant(self, request: Request) -> tuple[str, ...]:
        if request.source is None:
            return request.views
        self.config.source(request.source)
        return tuple(
            name
            for name, view in self.views.items()
            if name not in self.virtual_views and request.source in view.definition.sources
        )

    def reopen_source(self, name: str, *, allow_setup: bool = False) -> None:
        """Forget all that is known of a source, and make its feed's place again if that is allowed."""
        known = self._sources.pop(name, None)
        if known is not None:
            known.close()
        allowed, self.allow_setup = self.allow_setup, self.allow_setup or allow_setup
        try:
            source = self.source(name)
        finally:
            self.allow_setup = allowed
        if allowed or allow_setup:
            read = [r for view in self.views.values() for r in view.definition.relations]
            used = {relation.relation for relation in read if relation.source == name}
            outbox = self.config.source(name).outbox
            used |= {outbox} if outbox else set()
            source.renew(sorted(used & source.schemas().keys()))

    def audit(self, view: str | None = None) -> list[Audit]:
        """Bring the views up to date, then recompute them at that very state and compare."""
        with self.pipeline(heeds_periods=False) as pipeline:
            loaded(pipeline, ignore, threading.Event())
            caught_up(pipeline)
            names = list(pipeline.views) if view is None else [self.known_view(view)]
            warehouse = self.warehouse()
            return [audit_view(pipeline, warehouse, name) for name in names]

    def await_included(self, source: str, position: Position, *, timeout_seconds: float) -> bool:
        """Wait until the warehouse includes the source up to a position; False when it took too long.

        A run of this project is asked to note it: it would do so by itself, but rarely while nothing
        changes in a view. A caller that may not write into the project's folder waits for that.
        """
        started = time.monotonic()
        if self.is_included(source, position):
            return True
        requests = Requests(self.config.folder)
        request = Request(NOTE, source=source, position=position)
        try:
            with contextlib.suppress(OSError):
                requests.put(request)
            while time.monotonic() - started < timeout_seconds:
                time.sleep(INCLUDED_POLL_SECONDS)
                if self.is_included(source, position):
                    return True
            return False
        finally:
            with contextlib.suppress(OSError):
                requests.withdraw(request)

    def is_included(self, source: str, position: Position) -> bool:
        """Whether the warehouse's newest state includes the source up to a position."""
        known = self.warehouse(with_spark=False).latest().positions.get(source)
        return known is not None and self.source(source).compare_positions(known, position) >= 0


def _spark_lost(error: Exception, work: str = "run") -> ViewkeeperError:
    return ViewkeeperError(
        "spark-lost",
        f"Spark's process has ended under the {work}",
        detail=f"nothing that was committed is lost; the first to notice: {type(error).__name__}: {error}",
        hint=f"start the {work} again; if it comes again, give Spark more memory "
        "(driver_memory under [spark]) and look for it in the system's log",
    )
