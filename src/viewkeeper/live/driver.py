"""Drives the engine live: takes events to it from every thread, and hands its actions on to be carried out.

One lock is held while the engine takes a step, and no longer: a step asks no database and writes no file. Each
group's actions are carried out in order by its own thread (`group_work`), the feeds' at once. Nothing is decided
here.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from functools import partial
from typing import Any

from viewkeeper.engine import messages as m
from viewkeeper.engine.deliveries import Delivery
from viewkeeper.engine.machine import GroupMachine
from viewkeeper.engine.router import NO_GROUP, Addressed, Engine, not_kept
from viewkeeper.engine.view import View
from viewkeeper.errors import invariant
from viewkeeper.live.context import Context
from viewkeeper.live.feeds import Feeds
from viewkeeper.live.group_work import GroupWork, Opened
from viewkeeper.live.reading.contents import Reading
from viewkeeper.live.standing import Standing, combined, committed_in, oldest
from viewkeeper.run_events import Warned
from viewkeeper.sources.interface import Position

# How long a thread waits before it looks again by itself, and the shortest time that the clock is set to.
LOOK_SECONDS = 0.2
SHORTEST_SECONDS = 0.001


class Driver:
    """The engine of a run, its clock, and the threads of its groups."""

    def __init__(self, engine: Engine, around: Context, feeds: Feeds) -> None:
        """The caller starts ``feeds``, after `begin`."""
        self.engine = engine
        self._around = around
        self._feeds = feeds
        self._changed = threading.Condition(threading.RLock())
        self._works: dict[int, GroupWork] = {}
        self._readers = itertools.count(1)
        self._is_closing = False
        self._clock = threading.Thread(target=self._watch_clock, name="clock", daemon=True)

    @staticmethod
    def now() -> float:
        """The engine's time."""
        return time.monotonic()

    def begin(self, actions: Iterable[Addressed]) -> None:
        """Carry out what the engine began with, and go on from there."""
        with self._changed:
            self._take(actions)
        self._clock.start()

    # -- steps -------------------------------------------------------------------------------------

    def step(self, event: Any) -> None:
        """Take an event to the engine; from any thread."""
        with self._changed:
            self._take(self.engine.step(event, self.now()))

    def _take(self, actions: Iterable[Addressed]) -> None:
        for number, action in actions:
            if number == NO_GROUP or isinstance(action, m.RenewFeed):
                self._carry_out(action)
            else:
                self._work_of(number).put(action)
        self._changed.notify_all()

    def _carry_out(self, action: m.Action) -> None:
        """At once: a feed that goes back must not be overtaken by what it brings then."""
        match action:
            case m.FollowFeed(source, relations, position, known, generation):
                found = self._feeds.follow(source, relations, position, known)
                invariant(found == generation, f"the feed of {source} counts otherwise")
            case m.RenewFeed(source):
                self._feeds.renew(source)
            case m.TieViews(views):
                self._around.epochs.tie(views)
            case m.Warned():
                self._around.tell(Warned.of(asdict(action)))
            case _:
                invariant(False, f"{type(action).__name__} is for a group")

    def _work_of(self, number: int) -> GroupWork:
        if number not in self._works:
            step = partial(self._step_group, number)
            machine = self.engine.made[number]
            self._works[number] = GroupWork(machine, self._around, step, self.notify)
        return self._works[number]

    def _step_group(self, number: int, event: m.GroupEvent) -> None:
        try:
            self.step((number, event))
        except BaseException as error:  # a defect: it must reach the run, not die in a thread
            self._around.report(error)

    def _watch_clock(self) -> None:
        with self._changed:
            while not self._is_closing:
                left = self.engine.wake_at - time.monotonic()
                if left > 0:
                    self._changed.wait(None if left == math.inf else left)
                    continue
                try:
                    self._take(self.engine.step(m.TimePassed(), self.now()))
                except BaseException as error:
                    self._around.report(error)
                    return
                self._changed.wait(SHORTEST_SECONDS)

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Return when it holds, or after a while; asked again whenever something happens."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not holds() and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    # -- deliveries: in the feeds' threads ---------------------------------------------------------

    def deliver(self, delivery: Delivery) -> None:
        """Hand on what a feed brought, when there is room for it."""
        with self._changed:
            while self.engine.is_full(delivery.source) and not self._feeds.is_stopping:
                self._changed.wait(LOOK_SECONDS)
            self.step(m.FeedDelivered(delivery))

    # -- rest --------------------------------------------------------------------------------------

    def rest(self, numbers: Iterable[int] | None = None) -> tuple[int, ...]:
        """Return when groups, or all, have finished what is at hand and begin nothing; gives which."""
        with self._changed:
            wanted = None if numbers is None else set(numbers)
            all_numbers = (group.number for group in self.engine.listening)
            chosen = tuple(n for n in all_numbers if wanted is None or n in wanted)
            self._take(self.engine.rest(chosen, self.now()))
            groups = [self.engine.made[number] for number in chosen]
            while not all(group.is_over or group.is_idle for group in groups):
                self._changed.wait(LOOK_SECONDS)
        for number in chosen:
            self._works[number].wait()
        return chosen

    def resume(self, numbers: Iterable[int]) -> None:
        with self._changed:
            self._take(self.engine.resume(tuple(numbers), self.now()))

    def read_again(self, source: str, position: Position) -> None:
        with self._changed:
            self._take(self.engine.read_again(source, position, self.now()))

    def note_at_rest(self) -> None:
        """All rest: have the ledger say where they stand, for a run that begins there."""
        with self._changed:
            for group in self.engine.groups:
                self._take((group.number, action) for action in group.note_at_rest())
        for work in tuple(self._works.values()):
            work.wait()

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for work in tuple(self._works.values()):
            work.close()

    # -- whole relations ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self, view: str) -> Iterator[tuple[View, Reading]]:
        """A view as it is now, and its sources' relations at the cut that it stands at.

        Its group commits nothing meanwhile. Raises UsageError where no group keeps the view, and SourceError where
        its sources can't be read at that cut now.
        """
        work, future = self._want_reading(view)
        opened = future.result()
        try:
            if view not in opened.views:
                raise not_kept(view)
            with work.reading(opened.cuts, opened.read, opened.changes) as reading:
                yield opened.views[view], reading
        finally:
            self._step_group(work.machine.number, m.ReadingDone())

    def _want_reading(self, view: str) -> tuple[GroupWork, Future[Opened]]:
        with self._changed:
            machine = self.engine.group_of(view)
            if machine is None:
                raise not_kept(view)
            work, reader = self._work_of(machine.number), next(self._readers)
            future: Future[Opened] = Future()
            work.readers[reader] = future
            self.step((machine.number, m.ReadWanted(reader)))
            return work, future

    # -- what others ask ---------------------------------------------------------------------------

    def inspect(self, answer: Callable[[Engine], Any]) -> Any:
        """Something of the engine, between two steps."""
        with self._changed:
            return answer(self.engine)

    @property
    def works(self) -> list[GroupWork]:
        """Those of the groups that keep views now."""
        with self._changed:
            return [self._work_of(group.number) for group in self.engine.groups]

    def note(self, source: str, position: Position) -> None:
        """Have the ledger say that a source was passed up to a position as soon as it was."""
        with self._changed:
            groups = [g for g in self.engine.groups if source in g.scope.read_sources]
            if not all(group.notes.has(source, position) for group in groups):
                self.step(m.NoteWanted(source, position))

    def standing(self) -> Standing:
        """What the views do not show yet, and which schema changes wait for a decision."""
        now, wall = time.monotonic(), dt.datetime.now(dt.UTC)
        with self._changed:
            return combined(
                self._standing_of(group, lambda at: wall - dt.timedelta(seconds=now - at))
                for group in self.engine.listening
            )

    def _standing_of(self, group: GroupMachine, moment: Callable[[float], dt.datetime]) -> Standing:
        due = {source: moment(at) for source, at in group.intake.due_since.items()}
        work = self._works.get(group.number)
        approvals: list[Mapping[str, Any]] = []
        if work is not None and work.approval is not None:
            change, told = work.approval
            if group.waits_for_decision is change:
                # Nothing of the group moves: also a view that does not read the source is held up.
                approvals.append(told | {"views": sorted(group.scope.views)})
                # Another run may have met it before this one.
                due[change.source] = dt.datetime.fromisoformat(told["at"])
        unread = (committed_in(each, group.scope.relations) for each in group.not_taken_in)
        # What a change holds back came after it.
        sources = oldest(due, group.oldest_commits(), *unread)
        views: dict[str, dt.datetime | None] = {}
        for name, view in group.scope.views.items():
            own = [at for source, at in sources.items() if source in view.definition.sources]
            views[name] = min(own, default=None)
        return Standing(views, sources, tuple(approvals))
