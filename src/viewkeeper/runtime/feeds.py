"""Reads the feeds of all sources at once, each in a thread of its own, into one bounded queue.

A thread reconnects by itself, with backoff, from where it stood. What can't be mended by trying again
is passed on as an error, in its place. The queue is bounded: when the pipeline falls behind, feeds wait
at the source instead of filling this process's memory.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from viewkeeper.errors import SourceError
from viewkeeper.sources.backoff import Backoff
from viewkeeper.sources.interface import FeedItem, Position, Source

POLL_SECONDS = 0.2
ITEMS_PER_POLL_MAX = 5_000
POLLS_QUEUED_MAX = 64


@dataclass(frozen=True)
class Delivery:
    """What one poll of one source brought, and where its feed stands after it."""

    source: str
    items: tuple[FeedItem, ...]
    position: Position
    life: str


@dataclass(frozen=True)
class Failure:
    """A source's feed ended with an error that trying again does not mend."""

    source: str
    error: Exception


class Feeds:
    """All feeds together. Start it with ``with``; `next_deliveries` gives what has come."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        relations: Mapping[str, tuple[str, ...]],
        starts: Mapping[str, Position],
    ) -> None:
        self._queue: queue.Queue[Delivery | Failure] = queue.Queue(POLLS_QUEUED_MAX)
        self._stop = threading.Event()
        self.position: dict[str, Position] = dict(starts)
        # Which run of the source the feed reads from; None until it has delivered something.
        self.life: dict[str, str | None] = dict.fromkeys(sources)
        self.state: dict[str, str] = dict.fromkeys(sources, "connecting")
        self._readers = [
            _Reader(self, source, relations[name], starts[name]) for name, source in sources.items()
        ]

    def __enter__(self) -> Feeds:
        for reader in self._readers:
            reader.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for reader in self._readers:
            reader.thread.join()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def next_deliveries(self, wait_seconds: float) -> Iterator[Delivery]:
        """All that has come, waiting at most so long for the first; raises a feed's error."""
        deadline = time.monotonic() + wait_seconds
        while True:
            remaining = deadline - time.monotonic()
            try:
                arrived = self._queue.get(remaining > 0, timeout=max(remaining, 0.001))
            except queue.Empty:
                return
            deadline = 0.0
            if isinstance(arrived, Failure):
                raise arrived.error
            self.position[arrived.source] = arrived.position
            self.life[arrived.source] = arrived.life
            yield arrived

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        self._stop.wait(seconds)

    def put(self, arrived: Delivery | Failure) -> None:
        while not self.is_stopping:
            try:
                self._queue.put(arrived, timeout=POLL_SECONDS)
                return
            except queue.Full:
                continue

    def confirm(self, positions: Mapping[str, Position]) -> None:
        """These positions are durable with us; each reader tells its source when it next can."""
        for reader in self._readers:
            if reader.source.name in positions:
                reader.to_confirm = positions[reader.source.name]


class _Reader:
    def __init__(
        self, feeds: Feeds, source: Source, relations: tuple[str, ...], start: Position
    ) -> None:
        self.source = source
        self.to_confirm: Position | None = None
        self._feeds = feeds
        self._relations = relations
        self._position = start
        self._randomness = random.Random()
        self._delays = Backoff().delays(self._randomness)
        self.thread = threading.Thread(target=self._run, name=f"feed-{source.name}", daemon=True)

    def _run(self) -> None:
        while not self._feeds.is_stopping:
            try:
                self._read()
            except SourceError as error:
                if not error.retryable:
                    self._feeds.state[self.source.name] = "failed"
                    self._feeds.put(Failure(self.source.name, error))
                    return
                self._feeds.state[self.source.name] = "reconnecting"
                self._feeds.pause(next(self._delays))
            except Exception as error:  # a defect: it must reach the pipeline, not die in a thread
                self._feeds.state[self.source.name] = "failed"
                self._feeds.put(Failure(self.source.name, error))
                return

    def _read(self) -> None:
        with self.source.feed(self._relations, self._position) as feed:
            self._feeds.state[self.source.name] = "streaming"
            self._delays = Backoff().delays(self._randomness)
            while not self._feeds.is_stopping:
                items = feed.poll(POLL_SECONDS, ITEMS_PER_POLL_MAX)
                self._position = feed.position
                name = self.source.name
                self._feeds.put(Delivery(name, tuple(items), feed.position, feed.life))
                if self.to_confirm is not None:
                    confirmed, self.to_confirm = self.to_confirm, None
                    feed.confirm(confirmed)
