"""The live pipeline: from the feeds through the view managers into the warehouse, one epoch a cycle.

A cycle, in the order that makes it safe:

1. Take in what the feeds delivered; every view manager is told of every transaction.
2. Open one cut per source, and wait until each feed has passed the cut's bound: then every transaction
   that an answer can reflect is known.
3. Close the batch: the longest prefix of the order of arrival that the cuts reflect.
4. Let the view managers ask and compute. All answers of a source are at its one cut.
5. Commit the changes of all views, and the sources' positions, as one epoch.
6. Only then tell the sources that they may forget.

After a kill at any point the ledger says where to go on; whatever came after it comes again.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewkeeper.algebra.expressions import Column, Output
from viewkeeper.errors import SourceError, UsageError, invariant
from viewkeeper.protocols.messages import (
    AskSource,
    BatchClosed,
    InstallBatch,
    Reflected,
    SourceSettled,
    TransactionArrived,
)
from viewkeeper.runtime.asking import Asked, Questions, reflected_by
from viewkeeper.runtime.contents import OnRows, Reading
from viewkeeper.runtime.feeds import Feeds
from viewkeeper.runtime.integrator import Arrival, Integrator, last_positions
from viewkeeper.runtime.live_sweep import LiveSweep
from viewkeeper.runtime.pacing import Pace, SourceLimits
from viewkeeper.sources.interface import Cut, Position, SchemaChange, Source, SourceTransaction
from viewkeeper.spark.session import Spark
from viewkeeper.spark.staged import Staging
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.warehouse.commits import Changes, EpochCommit, Extent
from viewkeeper.warehouse.entries import Definition, Entry
from viewkeeper.warehouse.writer import Writer


@dataclass(frozen=True)
class Limits:
    """What one batch may be; a batch is as large as what waits, within these."""

    batch_transactions_max: int = 50_000
    batch_rows_max: int = 200_000
    # Up to so many changed rows a batch goes through the session for small data.
    tiny_rows_max: int = 5_000
    bound_wait_seconds: float = 30.0


@dataclass(frozen=True)
class View:
    """A view that the pipeline keeps: its definition over whole relations, and its text."""

    definition: ViewDefinition
    text: str

    @property
    def name(self) -> str:
        return self.definition.name


@dataclass
class Cycle:
    """What one cycle did and how long each phase took."""

    entry: Entry
    transactions: int
    rows: int
    asked: dict[str, Asked]
    seconds: dict[str, float] = field(default_factory=dict)
    # When the newest of the batch's transactions was committed at its source.
    newest_commit: Any = None


class Pipeline:
    """Keeps some views. Use it in a ``with``; call `cycle` again and again."""

    def __init__(
        self,
        views: Mapping[str, View],
        sources: Mapping[str, Source],
        writer: Writer,
        spark: Spark,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
        source_limits: Mapping[str, SourceLimits] | None = None,
    ) -> None:
        for view in views.values():
            require_live(view.definition)
        self.views = dict(views)
        self.sources = {name: sources[name] for name in sorted(sources)}
        self.writer = writer
        self.spark = spark
        self.limits = limits
        self._folder = Path(tempfile.mkdtemp(prefix="viewkeeper-stage-"))
        latest = writer.latest
        first = latest.last_txn + 1
        self._starts: dict[str, Position] = {
            name: latest.positions.get(name) or source.start_position()
            for name, source in self.sources.items()
        }
        names = tuple(self.sources)
        staging = Staging(spark.tiny, self._folder)
        self.managers = {
            name: LiveSweep(view.definition, staging, names, first)
            for name, view in self.views.items()
        }
        self.integrator = Integrator(names, first)
        self.relations = {source: self._relations_of(source) for source in names}
        self.feeds = Feeds(self.sources, self.relations, self._starts)
        self._applied = dict.fromkeys(names, 0)
        allowed = source_limits or {}
        self.paces = {name: Pace(allowed.get(name, SourceLimits())) for name in names}

    def _relations_of(self, source: str) -> tuple[str, ...]:
        used = (name for view in self.views.values() for name in view.definition.relations)
        return tuple(dict.fromkeys(name.relation for name in used if name.source == source))

    def __enter__(self) -> Pipeline:
        self.feeds.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.feeds.__exit__()
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- taking in --------------------------------------------------------------------------------

    def _take_in(self, wait_seconds: float) -> None:
        for delivery in self.feeds.next_deliveries(wait_seconds):
            for item in delivery.items:
                match item:
                    case SourceTransaction():
                        arrival = self.integrator.arrived(item)
                        event = TransactionArrived(arrival.transaction)
                        for manager in self.managers.values():
                            manager.step(event)
                    case SchemaChange():
                        raise _schema_changed(item)
                    case _:
                        pass

    @contextlib.contextmanager
    def _cuts(self) -> Iterator[tuple[dict[str, Cut], dict[str, Reflected]]]:
        """One cut per source, with everything known that they can reflect."""
        with contextlib.ExitStack() as stack:
            cuts = {
                name: stack.enter_context(source.cut(self.relations[name]))
                for name, source in self.sources.items()
            }
            self._await_bounds(cuts)
            waiting: dict[str, list[tuple[int, object]]] = {name: [] for name in cuts}
            for arrival in self.integrator.pending:
                transaction = arrival.transaction
                waiting[transaction.source].append((transaction.number, arrival.origin))
            yield (
                cuts,
                {
                    name: reflected_by(cut, self._applied[name], waiting[name])
                    for name, cut in cuts.items()
                },
            )

    def _await_bounds(self, cuts: Mapping[str, Cut]) -> None:
        deadline = time.monotonic() + self.limits.bound_wait_seconds
        behind = list(cuts)
        while behind:
            behind = [name for name in behind if not self._has_passed(name, cuts[name])]
            if behind and time.monotonic() > deadline:
                raise SourceError(
                    "feed-behind",
                    f"the feed of {', '.join(behind)} does not keep up with its source",
                    source=behind[0],
                    retryable=True,
                    detail=f"waited {self.limits.bound_wait_seconds:.0f} s for a position to pass",
                    hint="it is tried again; look at the source's load and its log",
                )
            if behind:
                self._take_in(0.05)
        for name, cut in cuts.items():
            if cut.life != self.feeds.life[name]:
                raise SourceError(
                    "source-restarted",
                    f"source {name} was restarted while it was being read",
                    source=name,
                    retryable=True,
                )

    def _has_passed(self, name: str, cut: Cut) -> bool:
        if self.feeds.life[name] is None:
            return False
        source = self.sources[name]
        return source.compare_positions(self.feeds.position[name], cut.bound) >= 0

    # -- the first load ---------------------------------------------------------------------------

    @property
    def new_views(self) -> tuple[str, ...]:
        """Views that the warehouse does not have yet, or has under another text."""
        known = {name: s.definition.text for name, s in self.writer.latest.views.items()}
        return tuple(n for n, view in self.views.items() if known.get(n) != view.text)

    def load(self, on_rows: OnRows = lambda name, rows: None) -> Entry | None:
        """Fill the new views, all at the cut that the warehouse stands at; None without new ones."""
        new = self.new_views
        dropped = frozenset(self.writer.latest.views) - frozenset(self.views)
        if not new and not dropped:
            return None
        with self._cuts() as (cuts, reflected):
            extents = self._evaluated(new, cuts, reflected, on_rows)
            latest = self.writer.latest
            definitions = {
                name: Definition(self.views[name].definition.schema, self.views[name].text)
                for name in new
            }
            epoch = EpochCommit(
                first_txn=latest.last_txn + 1,
                last_txn=latest.last_txn,
                views={name: Extent(extents[name].consolidated().frame) for name in new},
                positions={n: p for n, p in self._starts.items() if n not in latest.positions},
                definitions=definitions,
                dropped=dropped,
            )
            entry = self.writer.commit(epoch)
        self._forget_staged()
        return entry

    def _evaluated(
        self,
        views: Iterable[str],
        cuts: Mapping[str, Cut],
        reflected: Mapping[str, Reflected],
        on_rows: OnRows = lambda name, rows: None,
    ) -> dict[str, Any]:
        """Views computed from their sources' whole relations, at the applied cut."""
        staging = Staging(self.spark.bulk, self._folder)
        reading = Reading(staging, cuts, reflected, self.integrator.pending, on_rows)
        names = list(views)
        relations = reading.relations(self.views[name].definition for name in names)
        return {name: self._from_relations(name, relations) for name in names}

    def _from_relations(self, view: str, relations: Mapping[RelationName, Any]) -> Any:
        manager = self.managers[view]

        def contents(name: RelationName) -> Any:
            columns = manager.columns[name].names
            return relations[name].select(tuple(Output(c, Column(c)) for c in columns))

        return WholeView(manager.definition).evaluated(contents)

    @contextlib.contextmanager
    def recomputed(self, view: str) -> Iterator[Any]:
        """A view computed from its sources alone, at the state that the warehouse stands at."""
        with self._cuts() as (cuts, reflected):
            yield self._evaluated([view], cuts, reflected)[view]
        self._forget_staged()

    def committed_now(self) -> dict[str, Position]:
        """How far each source has committed, now."""
        bounds = {}
        for name, source in self.sources.items():
            with source.cut(()) as cut:
                bounds[name] = cut.bound
        return bounds

    def has_applied(self, targets: Mapping[str, Position]) -> bool:
        """Whether everything up to these positions is in the warehouse."""
        for name, target in targets.items():
            compare = self.sources[name].compare_positions
            if self.feeds.life[name] is None or compare(self.feeds.position[name], target) < 0:
                return False
            waiting = (a.origin for a in self.integrator.pending if a.origin.source == name)
            first = next(waiting, None)
            if first is not None and compare(first.position, target) <= 0:
                return False
        return True

    # -- cycles -----------------------------------------------------------------------------------

    def cycle(self, wait_seconds: float = 0.5) -> Cycle | None:
        """Maintain what has come; None when nothing has, or nothing that is visible yet."""
        clock = _Stopwatch()
        if not self.integrator.pending:
            self._take_in(wait_seconds)
        if not self.integrator.pending:
            return None
        with self._cuts() as (cuts, reflected):
            clock.lap("capture")
            batch = self.integrator.visible_prefix(
                {name: cut.reflects for name, cut in cuts.items()},
                self.limits.batch_transactions_max,
                self.limits.batch_rows_max,
            )
            if not batch:
                return None
            rows = sum(arrival.rows for arrival in batch)
            session = self.spark.tiny if rows <= self.limits.tiny_rows_max else self.spark.bulk
            staging = Staging(session, self._folder)
            questions = Questions(cuts, reflected, staging, self.paces)
            changes = {name: self._maintained(name, batch, questions) for name in self.managers}
            clock.lap("ask")
        tables = {name: change.table() for name, change in changes.items()}
        clock.lap("join")
        entry = self._commit(batch, tables)
        clock.lap("commit")
        self._forget_staged()
        newest = max(arrival.origin.committed_at for arrival in batch)
        return Cycle(entry, len(batch), rows, questions.asked, clock.laps, newest)

    def _maintained(self, view: str, batch: list[Arrival], questions: Questions) -> ViewChange:
        """One view's change for the whole batch, as its protocol decides it."""
        manager = self.managers[view]
        manager.staging = questions.staging
        todo = list(manager.step(BatchClosed(len(batch))))
        while todo:
            action = todo.pop(0)
            match action:
                case AskSource():
                    answer = questions.answer(action, manager.definition)
                    todo += manager.step(answer)
                case InstallBatch(change):
                    return ViewChange(change)
                case _:
                    invariant(False, f"{manager.name} wants something that can't be done live")
        raise AssertionError("unreachable: a batch ends with its installation")

    def _commit(self, batch: list[Arrival], tables: Mapping[str, Any]) -> Entry:
        positions = last_positions(batch)
        epoch = EpochCommit(
            first_txn=batch[0].number,
            last_txn=batch[-1].number,
            views={name: Changes(table) for name, table in tables.items()},
            positions=positions,
        )
        entry = self.writer.commit(epoch)
        self.integrator.applied(len(batch))
        for arrival in batch:
            self._applied[arrival.transaction.source] = arrival.transaction.number
        for manager in self.managers.values():
            for source, number in self._applied.items():
                # Every applied transaction was visible in a cut, so later cuts see it too.
                manager.step(SourceSettled(source, number))
        self.feeds.confirm(positions)
        return entry

    def _forget_staged(self) -> None:
        for path in self._folder.glob("*.parquet"):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class ViewChange:
    """A view's change with a number per row, not yet computed where it is Spark's to compute."""

    change: Any

    def table(self) -> Any:
        """The rows as one Arrow table: the view's columns, ``_txn``, ``_count``."""
        table = getattr(self.change, "table", None)
        return self.change.frame.toArrow() if table is None else table


class _Stopwatch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


def _schema_changed(change: SchemaChange) -> SourceError:
    return SourceError(
        "schema-changed",
        f"{change.source}.{change.relation} was changed at its source",
        source=change.source,
        retryable=False,
        detail=change.statement,
        hint="the views that read it must be rebuilt: remove them from the warehouse and run again",
    )


# Live, SWEEP always works in batches; the simulated forms differ in their messages only.
LIVE_PROTOCOLS = (None, "sweep")


def require_live(definition: ViewDefinition) -> None:
    """Raise UsageError for a protocol that only the simulator plays yet."""
    if definition.protocol not in LIVE_PROTOCOLS:
        raise UsageError(
            "protocol-not-live",
            f"{definition.name} asks for {definition.protocol}, which does not run live yet",
            detail="live views are kept by sweep, in batches; it reaches complete consistency",
            hint="write `-- protocol: sweep`, or leave the line out",
        )
