"""The live pipeline: from the feeds through groups of views into the warehouse.

Feeds are shared by all groups, and every delivery goes to each group that reads its source. Which views
form a group is decided here: those that share a relation, and those that one transaction was seen to
change together (MVC, sections 6.1 and 6.2). When groups become one, the new one takes over at the place
in every feed where the old ones end; other groups never notice. Views that stand at different cuts when
a run begins are such groups: those behind come up alone to where the foremost stands, and none shows
anything beyond that before they are one. So no transaction that concerns both is ever in two states.
"""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from viewkeeper.engine.router import changed_together, not_kept, schemas_of
from viewkeeper.engine.schema_changes import Evolution
from viewkeeper.engine.transaction_ties import Unit, Units
from viewkeeper.engine.unions import Union, latest
from viewkeeper.engine.view import View
from viewkeeper.errors import ViewkeeperError
from viewkeeper.merging.global_transactions import GlobalTransactions, Warn
from viewkeeper.merging.groups import partition
from viewkeeper.runtime.bulk_reading import OnRows
from viewkeeper.runtime.epochs import Epochs, FilledView, earliest
from viewkeeper.runtime.evolution_log import EvolutionLog
from viewkeeper.runtime.feeds import Away, Back, Delivery, Failure, Feeds, Message, Remarked
from viewkeeper.runtime.group import Group
from viewkeeper.runtime.keeping import NoteAt
from viewkeeper.runtime.memory import allow_huge_pages
from viewkeeper.runtime.pacing import Pace, SourceLimits
from viewkeeper.runtime.standing import Standing, combined
from viewkeeper.runtime.surroundings import Cycle, Limits, Surroundings
from viewkeeper.sources.interface import (
    Position,
    RelationSchema,
    SchemaChange,
    Source,
    SourceTransaction,
)
from viewkeeper.spark.session import Spark
from viewkeeper.views.definition import RelationName
from viewkeeper.views.level import Level
from viewkeeper.warehouse.writer import Writer

# How many more objects there must be before Python looks for garbage, by generation.
COLLECTION = (100_000, 20, 50)


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
        tell: Callable[[dict[str, Any]], None] = lambda event: None,
        rebuilt: Mapping[str, str] | None = None,
        resting: Mapping[str, str | None] | None = None,
    ) -> None:
        """``units`` holds parts of global transactions back, ``evolution`` knows what can replace
        what; ``tell`` is called from any thread.

        ``rebuilt`` views are filled anew though the warehouse has them, each for a reason.
        ``resting`` ones stay as they are, and are nobody's work here: with the source that can't go
        on for them, where that is why.
        """
        for view in views.values():
            _ = view.choice  # refuses what nobody can keep
        self.views = dict(views)
        self.sources = {name: sources[name] for name in sorted(sources)}
        self.writer = writer
        self._rebuilt = dict(rebuilt or {})
        self._resting = dict(resting or {})
        self._outcomes: queue.SimpleQueue[Cycle | BaseException] = queue.SimpleQueue()
        self._units = units or Units(GlobalTransactions(0.0), {})
        self._evolution = evolution
        self._tell = tell
        self._routing = threading.Lock()
        # Set whenever a group has filled its new views.
        self._loading = threading.Event()
        allowed = source_limits or {}
        self._around = Surroundings(
            self.sources,
            spark,
            Epochs(
                writer,
                self.sources,
                lambda positions: self.feeds.confirm(positions),
                self._rebuilt,
                self._resting,
            ),
            limits,
            {name: Pace(allowed.get(name, SourceLimits())) for name in self.sources},
            self._outcomes.put,
            self._loading.set,
            tell=tell,
            follow=self._follow,
            renew=lambda source: self.feeds.renew(source),
            log=log or EvolutionLog(),
        )
        standing = {
            name: {s: self._position(name, s) for s in self.views[name].definition.sources}
            for name in self.views
            if name not in self.new_views
        }
        starts = earliest(standing.values(), self.sources)
        self._resumed = frozenset(starts)
        for name, source in self.sources.items():
            later = [cut[name] for cut in standing.values() if name in cut]
            for position in _different(later, starts.get(name)):
                source.check_position(position)
        self._routed: dict[str, Position] = {
            name: starts.get(name) or source.start_position()
            for name, source in self.sources.items()
        }
        relations = {
            name: (*self._relations_of(name), *self._units.relations_of(name))
            for name in self.sources
        }
        for name, source in self.sources.items():
            source.check_followed(self._followed(name, standing))
        known = {name: schemas_of(evolution.catalog, name, relations[name]) for name in relations}
        self.feeds = Feeds(self.sources, relations, self._routed, self._deliver, known)
        # Where each feed stands: behind what has been routed, unless it went back.
        self._feeding = dict(self._routed)
        self.groups: list[Group] = []
        # Groups that have an end; until they have come to it they must know what cuts show.
        self._parting: list[Group] = []
        # What ended a feed: whoever waits for what it should bring would wait for ever.
        self._feed_failure: Exception | None = None
        self._standing = standing

    def _position(self, view: str, source: str) -> Position:
        """How far the view has come; before views had cuts of their own, all had the same."""
        latest = self.writer.latest
        position: Position = latest.views[view].positions.get(source) or latest.positions[source]
        return position

    def _followed(
        self, source: str, standing: Mapping[str, Mapping[str, Position]]
    ) -> dict[str, Position]:
        """The source's relations that views go on from, each with the earliest place where one stands."""
        places: dict[str, list[Mapping[str, Position]]] = {}
        for view, cut in standing.items():
            for name in self.views[view].definition.relations:
                if name.source == source:
                    places.setdefault(name.relation, []).append(cut)
        return {name: earliest(cuts, self.sources)[source] for name, cuts in places.items()}

    def _relations_of(self, source: str) -> tuple[str, ...]:
        used = [name for view in self.views.values() for name in view.definition.relations]
        used += self._evolution.watched(self.views)
        return tuple(dict.fromkeys(name.relation for name in used if name.source == source))

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
        for group in self.groups:
            group.rest()
            if kind is None:
                # Who begins next saves a little work by it, and needs nothing of it.
                with suppress(ViewkeeperError):
                    group.note_at_the_end()
        self.feeds.__exit__()
        for group in self.groups:
            group.close()

    # -- starting ---------------------------------------------------------------------------------

    @property
    def new_views(self) -> tuple[str, ...]:
        """Views that the warehouse does not have yet, has under another text, or must have anew."""
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
        with self._routing:
            self._form_groups()
        self.feeds.__enter__()
        fills = bool(self.new_views)
        while not self._is_loaded and not stopping():
            if not fills and self.waiting_for_word is not None:
                return  # views that are behind come to the others when somebody has decided
            self._raise_failure()
            self._loading.wait(0.2)
            self._loading.clear()

    @property
    def _is_loaded(self) -> bool:
        with self._routing:
            return all(group.is_loaded for group in self.groups)

    def _form_groups(self) -> None:
        """The views' groups; where members stand at different cuts, they are brought to one first."""
        new = set(self.new_views)
        reads = {name: view.definition.relations for name, view in self.views.items()}
        # Who is content to be right in the end waits for nobody, and nobody for it.
        levels = {name: view.definition.level for name, view in self.views.items()}
        loose = [name for name, level in levels.items() if level is Level.CONVERGENT]
        strict = {name: names for name, names in reads.items() if name not in loose}
        ties = self._around.epochs.ties
        for views in (*partition(strict, ties), *((name,) for name in loose)):
            fresh = tuple(name for name in views if name in new)
            cuts = self._aligned(name for name in views if name not in new)
            since = self._present(fresh)
            if not cuts:
                self._begin(self._group(views, since, new=views))
            elif len(cuts) == 1 and not fresh:
                self._begin(self._group(*cuts[0]))
            else:
                # New views are written over the schemas of the present, and one that takes another's
                # place must not show what was before it: all begin behind what lies up to now.
                end = self._routed | latest([*(cut for _, cut in cuts), since], self._compared)
                members = tuple(self._group(*aligned) for aligned in cuts)
                union = Union(members)
                for member in members:
                    member.end_at(end, union)
                    member.start()
                self._succeed(members, views, end)

    def _present(self, views: Iterable[str]) -> dict[str, Position]:
        """Where the sources of some views are now, if feeds begin before that: cuts show all up to there."""
        used = {name for view in views for name in self.views[view].definition.sources}
        return {name: self.sources[name].start_position() for name in sorted(used & self._resumed)}

    def _aligned(self, views: Iterable[str]) -> list[tuple[list[str], dict[str, Position]]]:
        """Views that stand at one cut, together with it."""
        cuts: list[tuple[list[str], dict[str, Position]]] = []
        for view in views:
            mine = self._standing[view]
            for together, cut in cuts:
                if all(cut.get(source, at) == at for source, at in mine.items()):
                    together.append(view)
                    cut.update(mine)
                    break
            else:
                cuts.append(([view], dict(mine)))
        return cuts

    def _compared(self, source: str, left: Position, right: Position) -> int:
        return self.sources[source].compare_positions(left, right)

    def _group(
        self,
        views: Iterable[str],
        starts: Mapping[str, Position],
        new: Iterable[str] = (),
        predecessors: tuple[Group, ...] = (),
    ) -> Group:
        chosen = {name: self.views[name] for name in views}
        everywhere = {**self._routed, **starts}
        return Group(chosen, self._around, everywhere, self._evolution, new, predecessors)

    def _begin(self, group: Group) -> None:
        self.groups.append(group)
        group.start()

    # -- groups that become one -------------------------------------------------------------------

    def _replace(self, members: tuple[Group, ...], views: Iterable[str]) -> None:
        """One group instead of some, from here on, or from where the foremost of them begins."""
        end = latest([self._routed, *(member.starts for member in members)], self._compared)
        union = Union(members)
        for member in members:
            self.groups.remove(member)
            member.finish(end, union)
        self._succeed(members, views, end)

    def _succeed(
        self, members: tuple[Group, ...], views: Iterable[str], end: Mapping[str, Position]
    ) -> None:
        """Begin a group with these views where its members end; those it has beside are new."""
        names = list(views)
        known = {name for member in members for name in member.views}
        new = [name for name in names if name not in known]
        self._parting += members
        self._begin(self._group(names, end, new, members))

    def _tied(self, changed: set[RelationName]) -> None:
        """Groups that one transaction, of one source or several, concerns become one before they
        see any of it. ``changed``: by that transaction."""
        concerned = tuple(
            g for g in self.groups if not g.is_loose and not changed.isdisjoint(g.relations)
        )
        if len(concerned) > 1:
            views = {name: view for g in concerned for name, view in g.views.items()}
            changing = (
                n for n, v in views.items() if not changed.isdisjoint(v.definition.relations)
            )
            self._around.epochs.tie(frozenset(changing))
            self._replace(concerned, views)

    # -- routing: in the feeds' threads ------------------------------------------------------------

    def _deliver(self, delivery: Message) -> None:
        match delivery:
            case Failure(_, error):
                self._feed_failure = error
                self._outcomes.put(error)
                return
            case Away(_, error):
                self._outcomes.put(error)
                return
            case Back(source):
                self._tell({"event": "source_back", "source": source})
                return
            case Remarked(source, remark):
                self._tell({"event": "warning", "source": source, **asdict(remark)})
                return
        for group in tuple(self.groups):
            if delivery.source in group.sources:
                group.has_room(lambda: self.feeds.is_stopping)
        for parting in tuple(self._parting):
            if delivery.source in parting.sources:
                parting.has_room(partial(self._is_over, parting))
        with self._routing:
            for released in self._units.released(delivery, time.monotonic()):
                self._route(released)

    def _route(self, released: Delivery | Unit | Warn) -> None:
        match released:
            case Warn():
                self._tell({"event": "warning", **asdict(released)})
            case Unit(parts):
                self._tied(
                    {
                        RelationName(item.source, change.relation)
                        for item in released.items
                        if isinstance(item, SourceTransaction)
                        for change in item.changes
                    }
                )
                since = {part.source: self._feeding[part.source] for part in parts}
                unit = replace(released, since=since)
                for group in self._listening():
                    if not since.keys().isdisjoint(group.sources):
                        group.inbox.put(unit)
            case Delivery(source, items, position):
                if len(self.groups) > 1:
                    for changed in changed_together(items):
                        self._tied(changed)
                for group in self._listening():
                    if group.wants(released):
                        group.inbox.put(released)
                self._feeding[source] = position
                if self._compared(source, position, self._routed[source]) > 0:
                    self._routed[source] = position

    def _is_over(self, group: Group) -> bool:
        return self.feeds.is_stopping or not group.is_running

    def _listening(self) -> tuple[Group, ...]:
        self._parting = [g for g in self._parting if not (g.has_ended or g.has_failed)]
        return (*self.groups, *self._parting)

    def _follow(self, source: str, position: Position) -> int:
        """Have the source's feed go back to a position, and read what the groups need now."""
        with self._routing:
            at = self._feeding[source]
            if self._compared(source, at, position) < 0:
                # It was sent back for another group just now, and has not brought all since: a feed that
                # began at the later position would leave out what that group still needs.
                position = at
            self._feeding[source] = position
            groups = self._listening()
            needed = [name for group in groups for name in (*group.relations, *group.watched)]
            names = dict.fromkeys(name.relation for name in needed if name.source == source)
            relations = (*names, *self._units.relations_of(source))
            known: dict[str, RelationSchema] = {}
            for group in groups:
                own = [r.relation for r in (*group.relations, *group.watched) if r.source == source]
                known |= schemas_of(group.evolution.catalog, source, own)
            generation = self.feeds.follow(source, relations, position, known)
            self._units.go_back(source, generation)
            return generation

    # -- what it does -----------------------------------------------------------------------------

    def cycle(self, wait_seconds: float = 0.5) -> Cycle | None:
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
        for group in self.groups:
            if group.has_failed:
                while True:
                    self.cycle(0)

    def paintings(self) -> list[dict[str, Any]]:
        """Every group's view update table."""
        return [group.painting for group in tuple(self.groups)]

    def group_of(self, view: str) -> Group:
        """The group that keeps a view; raises UsageError where none does."""
        with self._routing:  # else it might look while two groups become one
            for group in self.groups:
                if view in group.views:
                    return group
        raise not_kept(view)

    def committed_now(self) -> dict[str, Position]:
        """How far each source has committed, now."""
        bounds = {}
        for name, source in self.sources.items():
            with source.cut(()) as cut:
                bounds[name] = cut.bound
        return bounds

    def has_applied(self, targets: Mapping[str, Position]) -> bool:
        """Whether everything up to these positions is in the warehouse."""
        return all(
            self.sources[name].compare_positions(group.reached[name], target) >= 0
            for name, target in targets.items()
            for group in self._at_work
            if name in group.sources
        )

    @property
    def _at_work(self) -> tuple[Group, ...]:
        """The groups, and those that others wait for: until these end, nothing is applied for them."""
        parting = (g for g in tuple(self._parting) if not (g.has_ended or g.has_failed))
        return (*self.groups, *parting)

    @property
    def waiting_for_word(self) -> tuple[Group, SchemaChange] | None:
        """A group that can't go on, and the schema change that somebody must decide on first."""
        for group in self._at_work:
            change = group.waits_for_word
            if change is not None:
                return group, change
        return None

    def standing(self) -> Standing:
        """What the views do not show yet, and what waits for somebody's word."""
        return combined(group.standing() for group in self._at_work)

    def note(self, source: str, position: Position) -> bool:
        """Have the ledger say that a source was passed up to a position as soon as it was.

        Whether it says so by now. Groups note by themselves now and then only: positions without rows
        would fill the ledger.
        """
        known = self.writer.latest.positions.get(source)
        if known is not None and self.sources[source].compare_positions(known, position) >= 0:
            return True
        for group in tuple(self.groups):
            if source in group.read_sources and not group.has_noted(source, position):
                group.inbox.put(NoteAt(source, position))
        return False

    @contextmanager
    def recomputed(self, view: str) -> Iterator[FilledView]:
        """A view and its stores from its sources alone, at the state that the warehouse stands at.

        Its group rests meanwhile.
        """
        group = self.group_of(view)
        group.rest()
        try:
            with group.recomputed(view) as extent:
                yield extent
        finally:
            group.start()


def _different(positions: Iterable[Position], known: Position | None) -> list[Position]:
    """Each of them once, and without the one that is known."""
    found: list[Position] = []
    for position in positions:
        if position != known and position not in found:
            found.append(position)
    return found
