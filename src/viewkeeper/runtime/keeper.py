"""`Keeper`: a project opened for work. The command line and Python users hold the same thing.

```python
with viewkeeper.open("project") as keeper:
    keeper.run_until_caught_up()
    keeper.read("sales").show()
```
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.evolution.knowledge_file import read_knowledge, still_known, view_tables
from viewkeeper.evolution.preferences import preferences_of
from viewkeeper.merging.global_transactions import GlobalTransactions, Overdue
from viewkeeper.project import ProjectConfig, read_project
from viewkeeper.runtime.audit import Audit, audited
from viewkeeper.runtime.bulk_reading import RowsRead
from viewkeeper.runtime.evolution_log import EvolutionLog
from viewkeeper.runtime.evolving import Evolution
from viewkeeper.runtime.pipeline import Pipeline
from viewkeeper.runtime.report import RunReport
from viewkeeper.runtime.settings import limits_of, retention_of, spark_settings_of, storage_of
from viewkeeper.runtime.surroundings import Cycle, Limits
from viewkeeper.runtime.traffic import changed_rows
from viewkeeper.runtime.units import Outbox, Units
from viewkeeper.runtime.view import View
from viewkeeper.runtime.views_folder import (
    catalog_of,
    parsed_or_stored,
    sources_used,
    stored_relations,
    view_texts,
)
from viewkeeper.runtime.virtual_views import is_virtual, refuse_past, rows_now
from viewkeeper.sources.interface import Position, Source
from viewkeeper.sources.opening import open_source
from viewkeeper.spark.session import Spark, start_spark
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import RelationName
from viewkeeper.warehouse.background import Background, Housekeeping
from viewkeeper.warehouse.entries import ViewState
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OnEvent = Callable[[dict[str, Any]], None]

IDLE_WAIT_SECONDS = 0.5


def _ignore(event: dict[str, Any]) -> None:
    pass


class Keeper:
    """A project's sources, views and warehouse. Nothing is connected before it is needed."""

    def __init__(self, config: ProjectConfig, *, allow_setup: bool = False) -> None:
        self.config = config
        self.allow_setup = allow_setup
        self._resources = contextlib.ExitStack()
        self._sources: dict[str, Source] = {}
        self._spark: Spark | None = None
        self._views: dict[str, View] | None = None
        self._catalog: Catalog | None = None

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

    def source(self, name: str) -> Source:
        """One of the project's sources, opened once."""
        if name not in self._sources:
            settings = self.config.source(name)
            opened = open_source(
                name,
                settings.url,
                allow_setup=self.allow_setup,
                feed_url=settings.feed_url,
                statement_seconds=settings.statement_seconds,
            )
            self._sources[name] = self._resources.enter_context(opened)
        return self._sources[name]

    @property
    def catalog(self) -> Catalog:
        """Every relation of every source."""
        if self._catalog is None:
            self._catalog = catalog_of({name: self.source(name) for name in self.config.sources})
        return self._catalog

    @property
    def views(self) -> Mapping[str, View]:
        """The project's views, as far as they are kept: what has evolved with its sources is as it
        became, over the relations as the warehouse last knew them. Retired ones are left out."""
        if self._views is None:
            self._views = self._read_views()
        return self._views

    @property
    def evolution(self) -> Evolution:
        """What is known of the sources' relations, and what can replace what."""
        known = self._known_catalog
        return Evolution(known, read_knowledge(still_known(self.config.knowledge, known), known))

    @property
    def _known_catalog(self) -> Catalog:
        """The catalog, with the relations that views are over as they were when last heard of."""
        known = {r.name: r for r in self.catalog.relations}
        for state in self._stored_views().values():
            known |= {r.name: r for r in stored_relations(state.definition)}
        return Catalog(tuple(known.values()))

    def _stored_views(self) -> Mapping[str, ViewState]:
        storage = storage_of(self.config)
        return Ledger.open(storage).latest().shown_views if Ledger.exists(storage) else {}

    def _read_views(self) -> dict[str, View]:
        written = view_texts(self.config.views_folder)
        stored = self._stored_views()
        views = {}
        for name, view in parsed_or_stored(written, self.catalog, stored).items():
            # One that has evolved carries all that was said of its parts in its own headers.
            tables = None if view.origin else view_tables(self.config.knowledge).get(name)
            preferences = preferences_of(view.definition, tables)
            views[name] = dataclasses.replace(view, preferences=preferences)
        return views

    @property
    def spark(self) -> Spark:
        if self._spark is None:
            started = start_spark(spark_settings_of(self.config))
            self._spark = self._resources.enter_context(started)
        return self._spark

    def warehouse(self, *, with_spark: bool = True) -> Warehouse:
        """The project's warehouse, for reading; raises UsageError when there is none yet."""
        session = self.spark.bulk if with_spark else None
        storage = storage_of(self.config)
        Ledger.open(storage)
        return Warehouse(storage, session)

    def read(self, view: str, as_of: int | None = None) -> DataFrame:
        """A view's rows as a Spark DataFrame, at a transaction number or at the newest one.

        A virtual view is asked of its sources, and has a present only.
        """
        if view not in self.virtual_views:
            return self.warehouse().read(view, as_of)
        refuse_past(view, as_of)
        definition = self.views[view].definition
        sources = {name: self.source(name) for name in definition.sources}
        session = self.spark.bulk
        return session.createDataFrame(rows_now(definition, sources, session))

    @property
    def virtual_views(self) -> tuple[str, ...]:
        """The views that are not kept, as their texts say."""
        files = sorted(self.config.views_folder.glob("*.sql"))
        texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
        return tuple(name for name, text in texts.items() if is_virtual(name, text))

    # -- work -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def pipeline(
        self, on_event: OnEvent = _ignore, *, heeds_periods: bool = True
    ) -> Iterator[Pipeline]:
        """The pipeline over all views that are kept, with the warehouse's lease held.

        Unless it heeds periods, periodic views are brought up to date at once.
        """
        virtual, evolution = self.virtual_views, self.evolution
        views = {name: view for name, view in self.views.items() if name not in virtual}
        watched = evolution.watched(views)
        names = (*sources_used(views.values()), *(name.source for name in watched))
        sources = {name: self.source(name) for name in dict.fromkeys(names)}
        if self.allow_setup:
            self._set_up(views, watched, sources)
        warehouse = self._created_warehouse()
        housekeeping = Housekeeping(retention=retention_of(self.config))
        with (
            warehouse.writer() as writer,
            Pipeline(
                views,
                sources,
                writer,
                self.spark,
                Limits(heeds_periods=heeds_periods),
                source_limits=limits_of(self.config),
                units=self._units(sources),
                evolution=evolution,
                log=EvolutionLog(self.config.folder),
                tell=on_event,
            ) as pipeline,
            contextlib.closing(Background(writer, housekeeping)),
        ):
            yield pipeline

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
        if Ledger.exists(storage_of(self.config)):
            return self.warehouse()
        path, options = self.config.warehouse_path, self.config.warehouse_options
        return Warehouse.create(path, options, spark=self.spark.bulk)

    def run(
        self,
        *,
        until_caught_up: bool = False,
        for_seconds: float | None = None,
        on_event: OnEvent = _ignore,
        stop: threading.Event | None = None,
    ) -> RunReport:
        """Keep the views: for ever, until all that is committed now is in, or for some time.

        A source that is away is waited for. Raises SourceError for what only people can mend.
        """
        stop = stop or threading.Event()
        with self.pipeline(on_event, heeds_periods=not until_caught_up) as pipeline:
            report = RunReport()
            self._load(pipeline, on_event, stop)
            targets = pipeline.committed_now() if until_caught_up else {}
            deadline = None if for_seconds is None else time.monotonic() + for_seconds
            painted: list[dict[str, Any]] = []
            while not stop.is_set():
                if deadline is not None and time.monotonic() >= deadline:
                    break
                cycle = self._cycle(pipeline, on_event)
                paintings = pipeline.paintings()
                if paintings != painted:
                    painted = paintings
                    on_event({"event": "merge", "groups": painted})
                if cycle is not None:
                    report.add(cycle)
                    on_event(_batch_event(cycle))
                elif until_caught_up and pipeline.has_applied(targets):
                    break
            on_event({"event": "caught_up" if until_caught_up else "stopped", **report.as_dict()})
            return report

    def run_until_caught_up(self, on_event: OnEvent = _ignore) -> RunReport:
        """Bring everything in that is committed at the sources now."""
        return self.run(until_caught_up=True, on_event=on_event)

    def _load(self, pipeline: Pipeline, on_event: OnEvent, stop: threading.Event) -> None:
        new = pipeline.new_views
        if not new:
            pipeline.load(stopping=stop.is_set)
            return
        on_event({"event": "loading", "views": list(new)})
        started = time.monotonic()

        def read(name: RelationName, seen: RowsRead) -> None:
            on_event({"event": "relation_read", "relation": str(name), **seen.as_dict()})

        pipeline.load(read, stop.is_set)
        if stop.is_set():
            return
        on_event(
            {
                "event": "loaded",
                "views": list(new),
                "txn": pipeline.writer.latest.last_txn,
                "seconds": round(time.monotonic() - started, 3),
            }
        )

    def _cycle(self, pipeline: Pipeline, on_event: OnEvent) -> Cycle | None:
        try:
            return pipeline.cycle(IDLE_WAIT_SECONDS)
        except SourceError as error:
            if not error.retryable:
                raise
            on_event({"event": "source_waiting", "error": error.as_dict()})
            return None

    def audit(self, view: str | None = None) -> list[Audit]:
        """Bring the views up to date, then recompute them at that very state and compare."""
        with self.pipeline() as pipeline:
            self._load(pipeline, _ignore, threading.Event())
            names = list(pipeline.views) if view is None else [self._known(view)]
            warehouse = self.warehouse()
            return [audited(pipeline, warehouse, name) for name in names]

    def _known(self, view: str) -> str:
        if view not in self.views:
            raise UsageError(
                "unknown-view",
                f"the project has no view {view}",
                detail=f"its views are {', '.join(self.views)}",
            )
        return view

    def is_included(self, source: str, position: Position) -> bool:
        """Whether the warehouse's newest state includes the source up to a position."""
        known = self.warehouse(with_spark=False).latest().positions.get(source)
        return known is not None and self.source(source).compare_positions(known, position) >= 0


def _batch_event(cycle: Cycle) -> dict[str, Any]:
    now = dt.datetime.now(dt.UTC)
    return {
        "event": "batch",
        "epoch": cycle.entry.epoch,
        "txn": cycle.entry.last_txn,
        "transactions": cycle.transactions,
        "rows": cycle.rows,
        "freshness_seconds": round((now - cycle.newest_commit).total_seconds(), 3),
        "seconds": {phase: round(seconds, 4) for phase, seconds in cycle.seconds.items()},
        "asked": {source: dataclasses.asdict(asked) for source, asked in cycle.asked.items()},
        "changes": changed_rows(cycle),
        "changed": {
            view: {"inserted": tally.inserted, "deleted": tally.deleted}
            for view, tally in cycle.entry.shown_statistics.items()
        },
    }
