"""PostgreSQL as somebody would read it who does not know better; the suite must catch each."""

from __future__ import annotations

from viewkeeper.sources.interface import Feed, Snapshot, SourceTransaction
from viewkeeper.sources.postgres.feed import PostgresFeed
from viewkeeper.sources.postgres.snapshot import PostgresSnapshot
from viewkeeper.sources.postgres.source import PostgresSource
from viewkeeper.sources.urls import parse_source_url


class LsnCut(PostgresSnapshot):
    """ "The snapshot reflects what was committed in the log before it." It does not."""

    def reflects(self, transaction: SourceTransaction) -> bool:
        return int(transaction.position["lsn"]) <= int(self.bound["lsn"])


class LsnSource(PostgresSource):
    def cut(self, relations, shared=None) -> Snapshot:
        return LsnCut(self, relations, shared)


class OneWayCut(PostgresSnapshot):
    """ "What the feed has delivered before, the snapshot surely sees." Not always yet."""

    def __init__(self, source, relations, shared=None) -> None:
        self._delivered = set(source.delivered)
        super().__init__(source, relations, shared)

    def reflects(self, transaction: SourceTransaction) -> bool:
        return transaction.identity in self._delivered or super().reflects(transaction)


class OneWaySource(PostgresSource):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.delivered: set[int | str] = set()

    def cut(self, relations, shared=None) -> Snapshot:
        return OneWayCut(self, relations, shared)

    def feed(self, relations, start) -> Feed:
        feed = super().feed(relations, start)
        assert isinstance(feed, PostgresFeed)
        poll = feed.poll

        def remembering(*args, **kwargs):
            items = poll(*args, **kwargs)
            self.delivered.update(i.identity for i in items if isinstance(i, SourceTransaction))
            return items

        feed.poll = remembering
        return feed


class UnlookedCut(PostgresSnapshot):
    """ "A snapshot protects by itself." Not against TRUNCATE and ALTER TABLE."""

    def _require_unchanged(self, relations) -> None:
        pass


class UnlookedSource(PostgresSource):
    def cut(self, relations, shared=None) -> Snapshot:
        return UnlookedCut(self, relations, shared)


VARIANTS = {"lsn-cut": LsnSource, "one-way": OneWaySource, "unlooked": UnlookedSource}


def open_wrong(variant: str, url: str) -> PostgresSource:
    parsed = parse_source_url(url, "src")
    return VARIANTS[variant]("src", parsed, feed_url=parsed, allow_setup=True)
