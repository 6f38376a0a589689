"""One MariaDB database as a source: opening, schemas, and the way to its feed and its cuts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import Any

import pymysql

from viewkeeper.errors import SourceError, invariant
from viewkeeper.sources.interface import (
    Finding,
    Health,
    LinkState,
    Position,
    RelationSchema,
    Source,
)
from viewkeeper.sources.mariadb import binlog
from viewkeeper.sources.mariadb.catalog import Catalog, Table, refuse_problems
from viewkeeper.sources.mariadb.connection import (
    Link,
    connect,
    rows,
    transaction,
    translated,
    variables,
)
from viewkeeper.sources.mariadb.feed import Context, MariaDBFeed
from viewkeeper.sources.mariadb.giving_way import GivingWay
from viewkeeper.sources.mariadb.health import read_health
from viewkeeper.sources.mariadb.history import History, read_history
from viewkeeper.sources.mariadb.position import FIRST_OFFSET, Place, compare, place_of
from viewkeeper.sources.mariadb.preflight import findings
from viewkeeper.sources.mariadb.security import link_state, needless_rights
from viewkeeper.sources.mariadb.setup import (
    DURABLE,
    refuse_unless,
    run_setup,
    run_teardown,
    setup_script,
)
from viewkeeper.sources.mariadb.shapes import TableMemory
from viewkeeper.sources.mariadb.snapshot import SNAPSHOT, MariaDBSnapshot, snapshot_place
from viewkeeper.sources.mariadb.stream import BinlogStream
from viewkeeper.sources.urls import SourceUrl
from viewkeeper.sources.wire import Damage

# The number of events of the newest file that a check looks at, and how long it waits for the next one.
EVENTS_LOOKED_AT = 2_000
LOOK_SECONDS = 0.5


class MariaDBSource(Source):
    """Connects when it is first asked something. Questions of several threads queue for one link."""

    kind = "mariadb"
    knows_tables_by_identity = False

    def __init__(
        self,
        name: str,
        url: SourceUrl,
        *,
        feed_url: SourceUrl | None = None,
        allow_setup: bool = False,
    ) -> None:
        self.name = name
        self._url = url
        # Reading the log needs no right in any database, so the link must not ask for one.
        self._feed_url = replace(feed_url or url, database="")
        self._allow_setup = allow_setup
        self._catalog = Catalog(name, url.database)
        self._control: Link | None = None
        self._guard = threading.RLock()
        self._charsets: dict[int, str] = {}
        # What the newest feed was checked against; cuts must belong to the same history.
        self._history: History | None = None
        self._feed: MariaDBFeed | None = None
        # Where the newest feed began; what lies before it is not delivered again.
        self._start: Place | None = None
        # A feed may start before a later change of its tables.
        self._memory = TableMemory()
        self._damage = Damage(name)
        # Former values of settings that our own setup changed.
        self._former: dict[str, str] = {}
        self._giving_way = GivingWay(lambda: connect(url, name), self._catalog.is_wanted)

    def schemas(self, relations: Sequence[str] | None = None) -> Mapping[str, RelationSchema]:
        with self._asking(f"read the catalog of source {self.name}") as link:
            if relations is None:
                tables = self._catalog.readable(link)
            else:
                tables = self._catalog.tables(link, relations)
        self._memory.look(tables)
        return {relation: table.schema for relation, table in tables.items()}

    def preflight(self, relations: Sequence[str]) -> list[Finding]:
        with self._asking(f"check source {self.name}") as link:
            catalog = self._catalog
            return findings(self.name, link, catalog, relations, self.start_position, self._logged)

    def _logged(self) -> Iterator[binlog.Event]:
        """Some of the newest file's events, from its beginning."""
        place = place_of(self.start_position())
        first = Place(place.file, FIRST_OFFSET)
        with closing(BinlogStream(connect(self._feed_url, self.name), self.name, first)) as stream:
            for _ in range(EVENTS_LOOKED_AT):
                event = stream.next(LOOK_SECONDS)
                if event is None:
                    return
                yield event

    def link_states(self) -> list[LinkState]:
        return [link_state(self.name, url) for url in self._urls()]

    def needless_rights(self) -> list[Finding]:
        return [found for url in self._urls() for found in needless_rights(self.name, url)]

    def _urls(self) -> list[SourceUrl]:
        """For questions and for the feed; one where it is the same user."""
        is_same = self._url.user == self._feed_url.user
        return [self._url] if is_same else [self._url, self._feed_url]

    def setup_sql(self, relations: Sequence[str]) -> str:
        return setup_script(self.name, self._url, self._feed_url, self._catalog, relations)

    def setup(self, relations: Sequence[str]) -> None:
        refuse_unless(self._allow_setup, self.name)
        self.schemas(relations)
        with self._asking(f"set up source {self.name}") as link:
            self._former = run_setup(self.name, link) | self._former

    def teardown(self) -> None:
        refuse_unless(self._allow_setup, self.name)
        with self._asking(f"undo the setup of source {self.name}") as link:
            run_teardown(link, self._former)
        self._former = {}

    def start_position(self) -> Position:
        # Not where the log ends now: a transaction is written to the log before queries see it, and
        # with a semi-synchronous replica long before. A cut might miss what the feed has left behind.
        asking = self._asking(f"read the binary log of source {self.name}")
        with asking as link, transaction(link, SNAPSHOT):
            place = snapshot_place(link, self.name)
        return replace(place, born=self._birth_of(place.file)).as_position()

    def compare_positions(self, left: Position, right: Position) -> int:
        return compare(place_of(left), place_of(right), self.name)

    def check_position(self, position: Position) -> None:
        with self.feed((), position) as feed:
            feed.poll(0)

    def feed(self, relations: Sequence[str], start: Position) -> MariaDBFeed:
        place = place_of(start)
        with self._asking(f"open the feed of source {self.name}") as link:
            # Before the stream starts: what it is checked against must not be younger than it.
            history = read_history(link)
            now = {relation: self._catalog.table(link, relation) for relation in relations}
        for table in now.values():
            if table is not None:
                refuse_problems(self.name, table)
        self._memory.look(now)
        stream = BinlogStream(
            connect(self._feed_url, self.name), self.name, place, damage=self._damage
        )
        believed = {relation: self._memory.at(relation, place) for relation in relations}
        feed = MariaDBFeed(self.name, stream, place, believed, self._context_for(relations))
        self._history, self._feed, self._start = history, feed, place
        return feed

    def cut(
        self, relations: Sequence[str], shared: Mapping[str, Any] | None = None
    ) -> MariaDBSnapshot:
        invariant(shared is None, "a MariaDB cut can't be shared")
        charsets = self._known_charsets()
        link = connect(self._url, self.name)
        cut = MariaDBSnapshot(
            self.name,
            link,
            self._catalog,
            relations,
            charsets,
            self._check_history,
            self._holder,
            self._giving_way,
        )
        try:
            self._refuse_older(cut)
        except BaseException:
            cut.close()
            raise
        return cut

    def _refuse_older(self, cut: MariaDBSnapshot) -> None:
        start = self._start
        if start is not None and compare(place_of(cut.bound), start, self.name) < 0:
            raise SourceError(
                "cut-refused",
                f"a cut of source {self.name} would miss what its feed has passed",
                source=self.name,
                retryable=True,
                detail="a commit that is in the log is not visible yet: it waits for a replica",
            )

    def health(self, reached: Position | None = None) -> Health:
        place = None if reached is None else place_of(reached)
        if self._feed is not None:
            place = self._feed.place
        with self._asking(f"ask source {self.name} how it is") as link:
            return read_health(link, place)

    def close(self) -> None:
        self._giving_way.close()
        with self._guard:
            if self._control is not None:
                self._control._force_close()
            self._control = None

    def __exit__(self, *raised: object) -> None:
        self.close()

    # -- beside the feed ----------------------------------------------------------------------

    @contextmanager
    def _asking(self, doing: str) -> Iterator[Link]:
        """The one link for small questions, by one thread at a time; opened again when it was lost."""
        with self._guard, translated(self.name, doing):
            if self._control is not None and self._control.open:
                try:
                    self._control.ping(reconnect=False)
                except (pymysql.MySQLError, OSError):
                    self._control._force_close()
            if self._control is None or not self._control.open:
                self._control = connect(self._url, self.name)
            yield self._control

    def _holder(self) -> AbstractContextManager[Link]:
        return self._asking(f"hold tables of source {self.name}")

    def _context_for(self, relations: Sequence[str]) -> Context:
        return Context(
            table=self._table_now,
            relations={self._catalog.place(relation): relation for relation in relations},
            name_of=self._catalog.relation,
            charsets=self._known_charsets(),
            is_durable=self._is_durable,
            note=self._memory.note,
        )

    def _table_now(self, relation: str) -> Table | None:
        with self._asking(f"read the catalog of source {self.name}") as link:
            return self._catalog.table(link, relation)

    def _known_charsets(self) -> dict[int, str]:
        """Names of character sets by the numbers of their collations."""
        with self._guard:
            if not self._charsets:
                with self._asking(f"read the catalog of source {self.name}") as link:
                    found = rows(
                        link,
                        "SELECT ID, CHARACTER_SET_NAME FROM"
                        " information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
                        " WHERE ID IS NOT NULL",
                    )
                self._charsets = {int(number): str(charset) for number, charset in found}
            return self._charsets

    def _is_durable(self) -> bool:
        with self._asking(f"read the settings of source {self.name}") as link:
            return variables(link, *DURABLE) == DURABLE

    def _check_history(self, link: Link) -> None:
        """A cut of a log that was begun again must not be compared with transactions of the old one."""
        if self._history is not None and not read_history(link).continues(self._history):
            raise SourceError(
                "history-changed",
                f"source {self.name} was restarted or its log was reset since the feed was opened",
                source=self.name,
                retryable=True,
                hint="open the feed again: it finds out whether it can go on",
            )

    def _birth_of(self, file: str) -> int:
        """When the server began this file, which only the file itself tells."""
        place = Place(file, FIRST_OFFSET)
        stream = BinlogStream(connect(self._feed_url, self.name), self.name, place)
        stream.close()
        return stream.born
