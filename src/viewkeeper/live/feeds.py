"""Reads the feeds of all sources at once, each in its own thread, and hands on what arrives.

A thread reconnects by itself, with backoff, from where it stood. What can't be mended by trying again
is passed on as an error, in its place. The receiver of the deliveries may let a thread wait: then changes
stay at the source instead of filling this process's memory.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from viewkeeper.engine.deliveries import Delivery as Delivery
from viewkeeper.errors import SourceError
from viewkeeper.failpoints import failpoint
from viewkeeper.sources.backoff import Backoff
from viewkeeper.sources.interface import (
    FeedItem,
    Position,
    RelationSchema,
    Remark,
    SchemaChange,
    Source,
)
from viewkeeper.sources.transaction_block import TransactionBlock

POLL_SECONDS = 0.2
# Seconds without a successful read after which a source counts as away; shorter gaps are not reported.
AWAY_SECONDS = 2.0
ITEMS_PER_POLL_MAX = 5_000

# What relations of a source are taken for, by name.
Schemas = Mapping[str, RelationSchema]


@dataclass(frozen=True)
class Failure:
    """A source's feed ended with an error that trying again does not mend."""

    source: str
    error: Exception


@dataclass(frozen=True)
class Away:
    """A source's feed could not be read for a while, and is tried on."""

    source: str
    error: SourceError


@dataclass(frozen=True)
class Back:
    """A source that was away can be read again."""

    source: str


@dataclass(frozen=True)
class Remarked:
    """A source's feed passed something over; nothing is changed by it."""

    source: str
    remark: Remark


Message = Delivery | Failure | Away | Back | Remarked


class Feeds:
    """All feeds together. Start it with ``with``; ``deliver`` is called from the feeds' threads."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        relations: Mapping[str, tuple[str, ...]],
        starts: Mapping[str, Position],
        deliver: Callable[[Message], None],
        known: Mapping[str, Schemas] | None = None,
    ) -> None:
        """``known``: for each source, what its relations are taken for at its start."""
        self.deliver = deliver
        self._stop = threading.Event()
        self.state: dict[str, str] = dict.fromkeys(sources, "connecting")
        self._readers = [
            _Reader(self, source, relations[name], starts[name], (known or {}).get(name, {}))
            for name, source in sources.items()
        ]

    def __enter__(self) -> Feeds:
        for reader in self._readers:
            reader.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for reader in self._readers:
            if reader.thread.is_alive():
                reader.thread.join()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """Deliver nothing more; the threads end soon."""
        self._stop.set()

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        self._stop.wait(seconds)

    def follow(
        self, source: str, relations: Iterable[str], position: Position, known: Schemas
    ) -> int:
        """Read other relations from a position on, where they are known so; gives the generation of
        what comes then."""
        reader = next(r for r in self._readers if r.source.name == source)
        return reader.follow(tuple(relations), position, known)

    def renew(self, source: str) -> None:
        """Open the source's feed again: a question to it failed, and perhaps it is shutting down.

        PostgreSQL does not stop before its feeds have confirmed everything, which they can't when
        no thread may ask any more.
        """
        for reader in self._readers:
            if reader.source.name == source:
                reader.renewed.set()

    def confirm(self, positions: Mapping[str, Position]) -> None:
        """These positions are durable with us; each reader tells its source when it next can."""
        for reader in self._readers:
            if reader.source.name in positions:
                reader.to_confirm = positions[reader.source.name]


class _Reader:
    def __init__(
        self,
        feeds: Feeds,
        source: Source,
        relations: tuple[str, ...],
        start: Position,
        known: Schemas,
    ) -> None:
        self.source = source
        self.to_confirm: Position | None = None
        self._feeds = feeds
        self._relations = relations
        self._position = start
        # What the relations are at that position, as far as is known.
        self._known = dict(known)
        self._generation = 0
        # Since when the source can't be read, and whether that was reported.
        self._lost_at: float | None = None
        self._is_away = False
        self.renewed = threading.Event()
        self._lock = threading.Lock()
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
                    self._feeds.deliver(Failure(self.source.name, error))
                    return
                self._feeds.state[self.source.name] = "reconnecting"
                self._note_loss(error)
                self._feeds.pause(next(self._delays))
            except Exception as error:  # a defect: it must reach the pipeline, not die in a thread
                self._feeds.state[self.source.name] = "failed"
                self._feeds.deliver(Failure(self.source.name, error))
                return

    def _note_loss(self, error: SourceError) -> None:
        now = time.monotonic()
        self._lost_at = self._lost_at or now
        if not self._is_away and now - self._lost_at >= AWAY_SECONDS:
            self._is_away = True
            self._feeds.deliver(Away(self.source.name, error))

    def _note_return(self) -> None:
        self._lost_at = None
        if self._is_away:
            self._is_away = False
            self._feeds.deliver(Back(self.source.name))

    def follow(self, relations: tuple[str, ...], position: Position, known: Schemas) -> int:
        with self._lock:
            self._relations, self._position = relations, position
            self._known = dict(known)
            self._generation += 1
            return self._generation

    def _note_schemas(self, items: Iterable[FeedItem | TransactionBlock]) -> None:
        for item in items:
            if isinstance(item, SchemaChange):
                before = self._known.pop(item.relation, item.before)
                if item.renamed_to is not None and before is not None:
                    self._known[item.renamed_to] = before
                elif item.after is not None:
                    self._known[item.relation] = item.after

    def _read(self) -> None:
        with self._lock:
            relations, position, generation = self._relations, self._position, self._generation
            self.source.believe(self._known)
        with self.source.feed(relations, position) as feed:
            self._feeds.state[self.source.name] = "streaming"
            self._note_return()
            self._delays = Backoff().delays(self._randomness)
            while not self._feeds.is_stopping:
                items = tuple(feed.poll_blocks(POLL_SECONDS, ITEMS_PER_POLL_MAX))
                with self._lock:
                    if generation != self._generation or self.renewed.is_set():
                        self.renewed.clear()
                        return
                    self._position = feed.position
                    self._note_schemas(items)
                name = self.source.name
                for remark in feed.remarks():
                    self._feeds.deliver(Remarked(name, remark))
                self._feeds.deliver(Delivery(name, items, feed.position, feed.life, generation))
                if self.to_confirm is not None:
                    confirmed, self.to_confirm = self.to_confirm, None
                    feed.confirm(confirmed)
                    failpoint("after-confirm")
