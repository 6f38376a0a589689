"""MariaDB sources as somebody would build them who does not know better; the suite catches each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viewkeeper.sources.interface import Position
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.connection import connect, rows
from viewkeeper.sources.mariadb.feed import MariaDBFeed
from viewkeeper.sources.mariadb.position import Place, place_of
from viewkeeper.sources.mariadb.shapes import Doubt
from viewkeeper.sources.mariadb.snapshot import MariaDBSnapshot
from viewkeeper.sources.mariadb.source import MariaDBSource
from viewkeeper.sources.mariadb.stream import BinlogStream
from viewkeeper.sources.urls import parse_source_url

# A connection that breaks after so many events: often enough in the middle of a transaction.
EVENTS_PER_CONNECTION = 97


class ReadCommittedCut(MariaDBSnapshot):
    """The same statements, but the session's isolation level is what many servers have by default."""

    def _opened(self, *arguments: Any) -> Any:
        rows(self._link, "SET SESSION tx_isolation = 'READ-COMMITTED'")
        return super()._opened(*arguments)


class PlainBeginCut(MariaDBSnapshot):
    """BEGIN, then the place in the log, then the rows: the snapshot is taken at the first row."""

    def _start(self) -> None:
        rows(self._link, "BEGIN")


class WrongCutSource(MariaDBSource):
    def __init__(self, kind: type[MariaDBSnapshot], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kind = kind

    def cut(
        self, relations: Sequence[str], shared: Mapping[str, Any] | None = None
    ) -> MariaDBSnapshot:
        link = connect(self._url, self.name)
        charsets = self._known_charsets()
        return self._kind(
            self.name,
            link,
            self._catalog,
            relations,
            charsets,
            self._check_history,
            self._holder,
            self._giving_way,
        )


class ReconnectingFeed(MariaDBFeed):
    """Goes on after a lost connection at the last event it saw, like a driver that reconnects.

    Rows whose table map came before the break, or a commit whose beginning did, look like noise then.
    """

    def __init__(self, reopen: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._reopen = reopen
        self._events = 0

    def _took(self, event: binlog.Event) -> Any:
        self._events += 1
        if self._events % EVENTS_PER_CONNECTION == 0:
            at = Place(self._stream.file, self._stream.offset)
            self._stream.close()
            self._stream = self._reopen(at)
            self._group = None
            self._by_number.clear()
            self._layouts.clear()
        lost_rows = event.type in binlog.ROW_EVENTS and (
            self._group is None or binlog.table_number(event.body) not in self._by_number
        )
        lost_commit = event.type == binlog.XID and self._group is None
        return [] if lost_rows or lost_commit else super()._took(event)


class ReconnectingSource(MariaDBSource):
    def feed(self, relations: Sequence[str], start: Position) -> MariaDBFeed:
        tables = {name: (self._table_now(name), Doubt()) for name in relations}
        place = place_of(start)

        def reopen(at: Place) -> BinlogStream:
            return BinlogStream(connect(self._url, self.name), self.name, at)

        return ReconnectingFeed(
            reopen, self.name, reopen(place), place, tables, self._context_for(relations)
        )


def open_wrong(variant: str, url: str) -> MariaDBSource:
    parsed = parse_source_url(url, "src")
    match variant:
        case "read-committed":
            return WrongCutSource(ReadCommittedCut, "src", parsed)
        case "plain-begin":
            return WrongCutSource(PlainBeginCut, "src", parsed)
        case "automatic-reconnect":
            return ReconnectingSource("src", parsed)
    raise AssertionError(f"there is no wrong variant {variant}")
