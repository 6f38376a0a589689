"""The live pipeline: from the feeds through the engine into the warehouse.

It works out what a run begins with, sets feeds and engine going, and says what becomes of it. What is done when is the
engine's to decide (`engine`); the driver has it done.
"""

from __future__ import annotations

import gc
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.router import Beginning, Engine, not_kept
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.stored_changes import stored_changes
from viewkeeper.engine.transaction_ties import Units
from viewkeeper.engine.view import View
from viewkeeper.errors import ViewkeeperError
from viewkeeper.live.context import Context, EpochReport, Limits
from viewkeeper.live.driver import Driver
from viewkeeper.live.epochs import Epochs, FilledView, earliest
from viewkeeper.live.evolution_log import EvolutionLog
from viewkeeper.live.feeds import Away, Back, Delivery, Failure, Feeds, Message, Remarked
from viewkeeper.live.managers.manager_factory import filled
from viewkeeper.live.process_memory import allow_huge_pages
from viewkeeper.live.questions.message_counts import MessageCounts
from viewkeeper.live.questions.pacing import Pace, SourceLimits
from viewkeeper.live.reading.bulk_reading import OnRows
from viewkeeper.live.reading.contents import Reading, narrowed
from viewkeeper.live.standing import Standing
from viewkeeper.merging.global_transactions import GlobalTransactions
from viewkeeper.run_events import OnEvent, SourceCameBack, Warned, ignore
from viewkeeper.sources.interface import Position, SchemaChange, Source
from viewkeeper.spark.session import Spark
from viewkeeper.views.assembly import WholeView
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import InitialContents
from viewkeeper.warehouse.writer import Writer

# How many more objects there must be before Python looks for garbage, by generation.
COLLECTION = (100_000, 20, 50)
# How often a load looks whether it is to be given up.
LOOK_SECONDS = 0.2


class Pipeline:
    """Keeps some views. Use it in a ``with``; `load` sets it going, `cycle` tells what it does."""

    def __init__(
        self,
        views: Mapping[str, View],
        sources: Mapping[str, Source],
        writer: Writer,
        spark: Spark,
        limits: Limits = Limits(),  # noqa: B008  (immutable)
        source_limits: Mapping[str, SourceLimits] | None = None,
        units: Units | None = None,
        evolution: Evolution = Evolution(),  # noqa: B008  (immutable)
        log: EvolutionLog | None = None,
        tell: OnEvent = ignore,
        rebuilt: Mapping[str, str] | None = None,
        resting: Mapping[str, str | None] | None = None,
    ) -> None:
        """``units`` holds parts of global transactions back, ``evolution`` knows what can replace
        what; ``tell`` is called from any thread.

        ``rebuilt`` views are filled again though the warehouse has them, each for a reason.
        ``resting`` ones stay as they are, and no group here keeps them: with the source that can't go
        on for them, where that is why.
        """
        for view in views.values():
            _ = view.choice  # refuses what no protocol can keep
        self.views = dict(views)
        self.sources = {name: sources[name] for name in sorted(sources)}
        self.writer = writer
        self._rebuilt = dict(rebuilt or {})
        self._resting = dict(resting or {})
        self._outcomes: queue.SimpleQueue[EpochReport | BaseException] = queue.SimpleQueue()
        self._units = units or Units(GlobalTransactions(0.0), {})
        self._evolution = evolution
        self._tell = tell
        self._driver: Driver | None = None
        self._feeds: Feeds | None = None
        # What ended a feed: a thread that waits for what it should bring would wait for ever.
        self._feed_failure: Exception | None = None
        allowed = source_limits or {}
        self._around = Context(
            self.sources,
            spark,
            Epochs(writer, self.sources, self._confirm, self._rebuilt, self._resting),
            limits,
            {name: Pace(allowed.get(name, SourceLimits())) for name in self.sources},
            self._outcomes.put,
            tell=tell,
            log=log or EvolutionLog(),
        )
        self._standing = {
            name: {s: self._position(name, s) for s in self.views[name].definition.sources}
            for name in self.views
            if name not in self.new_views
        }
        starts = earliest(self._standing.values(), self.sources)
        self._resumed = frozenset(starts)
        for name, source in self.sources.items():
            later = [cut[name] for cut in self._standing.values() if name in cut]
            for position in _different(later, starts.get(name)):
                source.check_position(position)
        self._starts: dict[str, Position] = {
            name: starts.get(name) or source.start_position()
            for name, source in self.sources.items()
        }
        for name, source in self.sources.items():
            source.check_followed(self._followed(name))

    def _position(self, view: str, source: str) -> Position:
        """Which positions the view has reached; before each view had its own cut, all had the same."""
        latest = self.writer.latest
        position: Position = latest.views[view].positions.get(source) or latest.positions[source]
        return position

    def _followed(self, source: str) -> dict[str, Position]:
        """The source's relations that views go on from, each with the earliest position where one stands."""
        places: dict[str, list[Mapping[str, Position]]] = {}
        for view, cut in self._standing.items():
            for name in self.views[view].definition.relations:
                if name.source == source:
                    places.setdefault(name.relation, []).append(cut)
        return {name: earliest(cuts, self.sources)[source] for name, cuts in places.items()}

    def __enter__(self) -> Pipeline:
        # Changes are many small objects, none of them in circles: looking for circles among them all
        # the time would cost a third of the capture.
        self._collection = gc.get_threshold()
        gc.set_threshold(*COLLECTION)
        self._had_huge_pages = allow_huge_pages(False)
        self.writer.is_behind = lambda: any(group.is_behind for group in self.groups)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        gc.set_threshold(*self._collection)
        allow_huge_pages(self._had_huge_pages)
        self.writer.is_behind = lambda: False
        driver, feeds = self._driver, self._feeds
        if driver is None or feeds is None:
            return
        driver.rest()
        if kind is None:
            # Who begins next saves a little work by it, and needs nothing of it.
            with suppress(ViewkeeperError):
                driver.note_at_rest()
        feeds.__exit__()
        driver.close()

    # -- starting ---------------------------------------------------------------------------------

    @property
    def new_views(self) -> tuple[str, ...]:
        """Views that the warehouse does not have yet, has under another text, or must have again."""
        known = {name: s.definition.written for name, s in self.writer.latest.views.items()}
        return tuple(
            name
            for name, view in self.views.items()
            if known.get(name) != view.written or name in self._rebuilt
        )

    def load(
        self,
        on_rows: OnRows = lambda name, rows: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin to keep the views; returns when the new ones are filled, or at once when stopping."""
        dropped = {
            name
            for name, state in self.writer.latest.shown_views.items()
            if name not in self.views
            and name not in self._resting
            and not state.definition.has_ended
        }
        if dropped:
            self._around.epochs.drop(frozenset(dropped))
        new = self.new_views
        self._around.epochs.declare_published(v for n, v in self.views.items() if n not in new)
        self._around = replace(self._around, on_rows=on_rows)
        driver = self._begin()
        while not driver.inspect(_is_loaded) and not stopping():
            if not new and self.waiting_for_decision is not None:
                return  # views that are behind come to the others when somebody has decided
            self._raise_failure()
            driver.wait_until(lambda: _is_loaded(driver.engine), LOOK_SECONDS)

    def _begin(self) -> Driver:
        """Form the groups, and set feeds and groups going."""
        limits, now = self._around.limits, Driver.now()
        engine = Engine(self._beginning(), self._compare, self._units, limits)
        actions = engine.begin(now)
        relations = {name: engine.relations_of(name) for name in self.sources}
        known = {name: engine.known_of(name) for name in self.sources}
        self._feeds = Feeds(self.sources, relations, self._starts, self._deliver, known)
        self._driver = Driver(engine, self._around, self._feeds)
        self._driver.begin(actions)
        self._feeds.__enter__()
        return self._driver

    def _beginning(self) -> Beginning:
        new = frozenset(self.new_views)
        used = {name for view in new for name in self.views[view].definition.sources}
        # Where feeds begin before the present, cuts for new views show all up to there.
        resumed = sorted(used & self._resumed)
        return Beginning(
            self.views,
            new,
            self._standing,
            self._starts,
            {name: self.sources[name].start_position() for name in resumed},
            tuple(self._around.epochs.ties),
            self._evolution,
            stored_changes(self.writer.latest),
            frozenset(n for n, source in self.sources.items() if source.knows_tables_by_identity),
        )

    def _compare(self, source: str, left: Position, right: Position) -> int:
        return self.sources[source].compare_positions(left, right)

    def _confirm(self, positions: Mapping[str, Position]) -> None:
        if self._feeds is not None:
            self._feeds.confirm(positions)

    # -- deliveries: in the feeds' threads ---------------------------------------------------------

    def _deliver(self, delivery: Message) -> None:
        match delivery:
            case Failure(_, error):
                self._feed_failure = error
                self._outcomes.put(error)
            case Away(_, error):
                self._outcomes.put(error)
            case Back(source):
                self._tell(SourceCameBack(source))
            case Remarked(source, remark):
                self._tell(Warned(remark.message, remark.code, source=source))
            case Delivery():
                self._at_work.deliver(delivery)

    # -- what it does -----------------------------------------------------------------------------

    @property
    def _at_work(self) -> Driver:
        assert self._driver is not None, "it was not loaded"
        return self._driver

    def cycle(self, wait_seconds: float = 0.5) -> EpochReport | None:
        """The next epoch that was committed; None when there was none in that time.

        Raises SourceError when a source has to be waited for (the pipeline goes on by itself if it
        is retryable), and whatever else a group met.
        """
        try:
            outcome = self._outcomes.get(wait_seconds > 0, wait_seconds)
        except queue.Empty:
            return None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _raise_failure(self) -> None:
        """Raise what ended a feed, or a group that is still loading; what can be tried again, it does."""
        if self._feed_failure is not None:
            raise self._feed_failure
        if any(group.has_failed for group in self.groups):
            while True:
                self.cycle(LOOK_SECONDS)

    @property
    def groups(self) -> tuple[GroupMachine, ...]:
        """The groups that keep views now; to look at, not to step."""
        return () if self._driver is None else self._driver.inspect(lambda e: tuple(e.groups))

    def group_of(self, view: str) -> GroupMachine:
        """The group that keeps a view; raises UsageError where none does."""
        found: GroupMachine | None = self._at_work.inspect(lambda e: e.group_of(view))
        if found is None:
            raise not_kept(view)
        return found

    @property
    def has_evolved(self) -> bool:
        """Whether a view has another definition than it began with."""
        return any(group.has_evolved for group in self.groups)

    def message_counts(self) -> dict[str, MessageCounts]:
        """What each view's manager has sent and got since it began."""
        found: dict[str, MessageCounts] = {}
        for work in self._at_work.works:
            found |= work.message_counts
        return found

    def paintings(self) -> list[dict[str, Any]]:
        """Every group's view update table."""
        painted = self._at_work.inspect(lambda e: [group.jobs.painted() for group in e.groups])
        return list(painted)

    def committed_now(self) -> dict[str, Position]:
        """How far each source has committed, now."""
        bounds = {}
        for name, source in self.sources.items():
            with source.cut(()) as cut:
                bounds[name] = cut.bound
        return bounds

    def has_applied(self, targets: Mapping[str, Position]) -> bool:
        """Whether everything up to these positions is in the warehouse."""
        return bool(self._at_work.inspect(lambda e: e.has_applied(targets)))

    @property
    def waiting_for_decision(self) -> tuple[GroupMachine, SchemaChange] | None:
        """A group that can't go on, and the schema change that somebody must decide on first."""
        found: tuple[GroupMachine, SchemaChange] | None
        found = self._at_work.inspect(lambda e: e.waiting_for_decision)
        return found

    def standing(self) -> Standing:
        """What the views do not show yet, and what waits for somebody's word."""
        return Standing() if self._driver is None else self._driver.standing()

    def note(self, source: str, position: Position) -> bool:
        """Have the ledger say that a source was passed up to a position as soon as it was.

        Whether it says so by now. Groups note by themselves now and then only: positions without rows
        would fill the ledger.
        """
        known = self.writer.latest.positions.get(source)
        if known is not None and self.sources[source].compare_positions(known, position) >= 0:
            return True
        self._at_work.note(source, position)
        return False

    def read_again(self, source: str, position: Position) -> None:
        """Have a source's feed go back to a position; what the views have already changes nothing."""
        self._at_work.read_again(source, position)

    @contextmanager
    def paused(self, *views: str) -> Iterator[None]:
        """The groups of these views, or all, finish what is at hand, and begin nothing before this ends."""
        driver = self._at_work
        numbers = driver.rest({self.group_of(view).number for view in views} if views else None)
        try:
            yield
        finally:
            driver.resume(numbers)

    @contextmanager
    def reading(self, view: str) -> Iterator[tuple[View, Reading]]:
        """A view, and its sources' relations at the state that the warehouse stands at.

        Its group commits nothing meanwhile; the others go on.
        """
        with self._at_work.reading(view) as found:
            yield found

    @contextmanager
    def recomputed(self, view: str) -> Iterator[FilledView]:
        """A view and its stores from its sources alone, at the state that the warehouse stands at."""
        with self.reading(view) as (known, reading):
            definition = known.definition
            contents = narrowed(definition, reading.relations([definition]))
            found = filled(known, contents, reading.share)
            # As the definition says, not as the view's manager would go about it.
            rows = WholeView(pruned(definition)).evaluated(contents)
            yield replace(found, contents=InitialContents(rows, found.contents.stores))


def _is_loaded(engine: Engine) -> bool:
    return all(group.is_loaded for group in engine.groups)


def _different(positions: Iterable[Position], known: Position | None) -> list[Position]:
    """Each of them once, and without the one that is known."""
    found: list[Position] = []
    for position in positions:
        if position != known and position not in found:
            found.append(position)
    return found
