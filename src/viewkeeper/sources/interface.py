"""What every kind of source offers: its schema, a feed, exact cuts, queries at a cut, health.

All compensation rests on one sentence: *we know exactly which transactions an answer reflects.* A
`Snapshot` is how a source keeps that promise: it answers queries and says, of any transaction of the
feed, whether those answers reflect it. The caller's duty: use an answer only after the feed has
delivered everything up to the cut's `bound`, because only then is every reflected transaction known.

A source adapter knows its database and nothing of views or protocols.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from viewkeeper.algebra.types import Row, Schema
from viewkeeper.errors import SourceError

if TYPE_CHECKING:
    from viewkeeper.sources.transaction_block import TransactionBlock

# A place in a source's feed: plain JSON-able data, comparable through `Source.compare_positions`.
Position = Mapping[str, Any]


@dataclass(frozen=True)
class RelationSchema:
    """One relation of a source, as far as views may read it."""

    relation: str
    schema: Schema
    key: tuple[str, ...]
    fingerprint: str
    # Columns that exist but can't be read exactly, with the reason; a view that names one is refused.
    refused: Mapping[str, str] = field(default_factory=dict)


# The next two come by the ten thousand in a second, so they are tuples, which are made quickest.
class RelationChange(NamedTuple):
    """The rows that one transaction took out of a relation and put into it, in canonical form."""

    relation: str
    deleted: Sequence[Row]
    inserted: Sequence[Row]


class SourceTransaction(NamedTuple):
    """A whole committed transaction, in the feed's order.

    Only a transaction that also changes a schema comes in several pieces, one between each two of
    its schema changes, all with the same ``identity``; each piece has its own position.
    """

    source: str
    position: Position
    # What the source's cuts recognise it by: an xid, a binlog place, a log sequence number.
    identity: int | str
    committed_at: dt.datetime
    changes: tuple[RelationChange, ...]
    # An id that the application gave it, and in how many transactions of any sources: a part of a
    # global transaction. None where the application said nothing, or where a source can't carry it.
    tie: tuple[str, int] | None = None


@dataclass(frozen=True)
class ToldColumns:
    """All that a statement says of itself to have done to columns; their types it leaves alone.

    Names are compared without regard to case, as the databases do that tell it.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def name_after(self, column: str) -> str | None:
        """What a column is called afterwards; None when it is gone."""
        folded = column.casefold()
        if any(folded == name.casefold() for name in self.dropped):
            return None
        return next((new for old, new in self.renamed.items() if old.casefold() == folded), column)


@dataclass(frozen=True)
class SchemaChange:
    """A change of a relation's schema, in its place in the feed's order."""

    source: str
    position: Position
    relation: str
    before: RelationSchema | None
    after: RelationSchema | None
    statement: str
    # Whether the contents changed without row changes in the feed: the relation must be read again.
    # TRUNCATE comes as a change with ``before == after`` and ``rewrites``.
    rewrites: bool
    # Old name to new name, for columns that were renamed and are otherwise what they were.
    renamed_columns: Mapping[str, str] = field(default_factory=dict)
    # The relation's new name when it was renamed; ``after`` is then None under the old name.
    renamed_to: str | None = None
    # Where the source's log has statements: what this one says. A source that describes its tables as
    # they are now may be ahead of this place in its log; the statement never is.
    told: ToldColumns | None = None
    # Whether it only says what the relation really is: ``before`` was what the source believed.
    corrects: bool = False
    # Whether the feed has left out what happened between its last item and this: all that reads the
    # source must go to this place at once, and so ``rewrites`` is true of every relation concerned.
    skips: bool = False


@dataclass(frozen=True)
class Progress:
    """Nothing happened for us, and the feed stands here now."""

    source: str
    position: Position


FeedItem = SourceTransaction | SchemaChange | Progress


@dataclass(frozen=True)
class Remark:
    """Something in a feed that was passed over and changes nothing, for the run's log."""

    code: str
    message: str


@dataclass(frozen=True)
class Finding:
    """One thing that preflight has to say: ``severity`` is ok, warning or refused."""

    code: str
    severity: str
    message: str
    fix: str = ""


@dataclass(frozen=True)
class LinkState:
    """What a connection of ours is, as somebody who looks at the security of a project wants to know it."""

    user: str
    # loopback, socket, file or network
    place: str
    # The protocol's version, e.g. TLSv1.3; None when it is not encrypted.
    tls: str | None = None
    # Whether the server's certificate was checked, its name included.
    verified: bool = False
    # How the server found out who we are; "none" when it did not, None where it does not tell.
    authentication: str | None = None


@dataclass(frozen=True)
class Health:
    """How the source and our feed of it are doing; None where a source has no such figure."""

    state: str
    lag_bytes: int | None
    lag_seconds: float | None
    retained_bytes: int | None
    detail: str = ""


@dataclass(frozen=True)
class KeyedRead:
    """A question to one relation: these columns of the rows whose key columns match.

    ``keys`` has one column per name in ``key_columns``; None asks for the whole relation, or for
    ``part`` of ``parts`` of it, so that several tasks share the work at one cut.
    """

    relation: str
    columns: tuple[str, ...]
    key_columns: tuple[str, ...] = ()
    keys: pa.Table | None = None
    part: int = 0
    parts: int = 1


class Closable(ABC):
    """Something that holds a connection; leaving its ``with`` closes it. Closing twice is fine."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held, quietly also when the link is gone."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class Snapshot(Closable):
    """A read of the source at one exact cut; closing it releases what the source holds for it.

    `reflects` and `bound` stay good after closing. Used by one thread at a time.
    """

    # Answers may be used once the feed has delivered everything up to here.
    bound: Position
    # Which run of the server it reads from, where that matters ("" elsewhere). A crash may take back
    # what a query had seen: an answer is good only with a feed of the same life; else ask again.
    life: str = ""
    # Of the relations the cut was opened for, as they are at the cut.
    schemas: Mapping[str, RelationSchema]

    @abstractmethod
    def reflects(self, transaction: SourceTransaction) -> bool:
        """Whether answers at this cut include the transaction. Exact for every feed transaction."""

    def reflects_each(self, transactions: Sequence[SourceTransaction]) -> list[bool]:
        """`reflects` of each of them."""
        return [self.reflects(transaction) for transaction in transactions]

    def reflects_block(self, block: TransactionBlock) -> list[bool]:
        """`reflects` of each of its transactions."""
        return self.reflects_each(block.transactions())

    @abstractmethod
    def read(self, question: KeyedRead) -> Iterator[pa.RecordBatch]:
        """The rows, with types as `arrow_schema` of the relation's Schema; duplicates kept.

        Raises SourceError; a *broken query* (the schema changed under it) has the code
        ``broken-query``, a cut that can't be trusted any more (restart, lost snapshot) ``cut-lost``,
        one whose tables are others by now, or are about to be, ``cut-overtaken``.
        """

    @abstractmethod
    def query(
        self, sql: str, schema: Schema, parameters: Sequence[Any] = ()
    ) -> Iterator[pa.RecordBatch]:
        """A fragment of several relations in the source's own SQL; ``schema`` types the columns."""

    @abstractmethod
    def share(self) -> Mapping[str, Any] | None:
        """JSON-able data with which another process reads at this very cut; None where it can't."""

    def twin(self) -> Snapshot | None:
        """Another connection at this very cut, for another thread; None where there can be none."""
        return None

    def row_estimate(self, relation: str) -> int | None:
        """About how many rows a relation has, from what the source knows anyway; nothing may be wrong if it is."""
        return None


def newest_of(source: Source, positions: Sequence[Position]) -> Position | None:
    """The newest of some positions of a source; None where they can't be compared, or there is none."""
    found: Position | None = None
    for position in positions:
        try:
            if found is None or source.compare_positions(found, position) < 0:
                found = position
        except SourceError:
            return None
    return found


def cut_lost(source: str, detail: str) -> SourceError:
    """What a cut raises once it has lost what it read at."""
    return SourceError(
        "cut-lost",
        f"a cut of source {source} is gone",
        source=source,
        retryable=True,
        detail=detail,
        hint="open a new cut and ask again",
    )


def cut_overtaken(source: str, detail: str) -> SourceError:
    """What a cut raises once an owner has changed one of its tables, or waits to: it kept no owner waiting."""
    return SourceError(
        "cut-overtaken",
        f"a cut of source {source} was overtaken by a change of its tables",
        source=source,
        retryable=True,
        detail=detail,
        hint="open a new cut and ask again",
    )


def broken_query(source: str, detail: str) -> SourceError:
    """What a cut raises when it is asked for what its source does not have."""
    return SourceError(
        "broken-query",
        f"a question to source {source} does not fit its schema",
        source=source,
        retryable=False,
        detail=detail,
        hint="the schema of the source has changed: read it again",
    )


class Feed(Closable):
    """Whole transactions and schema changes in the source's order, from a position on.

    Used by one thread at a time.
    """

    # Everything up to here has been delivered; moves with every item, `Progress` included.
    position: Position
    # As `Snapshot.life`.
    life: str = ""

    @abstractmethod
    def poll(self, timeout_seconds: float, items_max: int = 10_000) -> list[FeedItem]:
        """What has arrived, after waiting at most this long for the first item; empty when nothing came.

        Raises SourceError: retryable after a lost connection (`Source.feed` again from the last
        position), permanent when the log has a gap (``feed-gap``): only a rebuild helps then.
        """

    def poll_blocks(
        self, timeout_seconds: float, items_max: int = 10_000
    ) -> Sequence[FeedItem | TransactionBlock]:
        """As `poll`; but transactions that come by the thousand may be given as columns."""
        return self.poll(timeout_seconds, items_max)

    def remarks(self) -> list[Remark]:
        """What was passed over since this was last asked."""
        return []

    @abstractmethod
    def confirm(self, position: Position) -> None:
        """Everything up to here is durable with us: the source may forget it. Never before that."""


class Source(Closable):
    """One database. Creates nothing there, unless ``allow_setup`` was given when it was opened.

    May be used from several threads; its feeds and cuts are independent of each other.
    """

    name: str
    kind: str
    # Whether its feed goes on bringing a table's rows under whatever name the table had; else names are all it has.
    knows_tables_by_identity = True

    @abstractmethod
    def schemas(self, relations: Sequence[str] | None = None) -> Mapping[str, RelationSchema]:
        """The relations' schemas now; all readable relations when none are named."""

    @abstractmethod
    def preflight(self, relations: Sequence[str]) -> list[Finding]:
        """Every condition that would make cuts inexact or harm the source, each with its fix."""

    def link_states(self) -> list[LinkState]:
        """What the connections for questions and for the feed are, by connecting."""
        return []

    def needless_rights(self) -> list[Finding]:
        """Rights of our users that are more than `setup_sql` gives, each with what takes it away."""
        return []

    @abstractmethod
    def setup_sql(self, relations: Sequence[str]) -> str:
        """The script that the source's owner runs: roles, publication, triggers, settings."""

    @abstractmethod
    def setup(self, relations: Sequence[str]) -> None:
        """Run what `setup_sql` prints; raises UsageError unless setup is allowed. Idempotent."""

    @abstractmethod
    def teardown(self) -> None:
        """Remove what `setup` made (slot, publication, triggers); same permission."""

    def renew(self, relations: Sequence[str]) -> None:
        """Make again what the feed needs, where it can't go on as it is; same permission as `setup`.

        What it has not delivered is given up: for sources whose views are about to be refilled.
        """
        self.setup(relations)

    @abstractmethod
    def start_position(self) -> Position:
        """A position from which a feed would deliver everything that commits from now on."""

    @abstractmethod
    def compare_positions(self, left: Position, right: Position) -> int:
        """−1, 0 or 1; raises SourceError when they belong to different histories of the source."""

    def check_position(self, position: Position) -> None:
        """Raise SourceError ``feed-gap`` where the log is not the one any more that had this place.

        A feed looks at the place where it starts. Views may stand at later ones, and a log that was
        put back to an earlier state and written to has those again, with something else before them.
        """

    def believe(self, known: Mapping[str, RelationSchema]) -> None:
        """What relations are taken for where the next feed starts.

        A source whose log does not say what a table was tells by its feed where it was something else.
        """

    def expect_ties(self) -> None:
        """Transactions may say by themselves what they are part of: have later feeds heed it."""

    def check_followed(self, relations: Mapping[str, Position]) -> None:
        """Raise SourceError where changes of a relation behind its position may be missing from a feed."""

    @abstractmethod
    def feed(self, relations: Sequence[str], start: Position) -> Feed:
        """The feed after ``start``. Raises SourceError ``feed-gap`` when the log no longer has it."""

    @abstractmethod
    def cut(self, relations: Sequence[str], shared: Mapping[str, Any] | None = None) -> Snapshot:
        """Open a cut now, or join the one that another process shared.

        Without relations it reads nothing and still has a bound: what is committed now.
        """

    def expect_cut(self) -> None:
        """Another cut will be opened soon: where that takes time, get ready for it."""

    @abstractmethod
    def health(self, reached: Position | None = None) -> Health:
        """Lag, retained log, slot state.

        ``reached``: where the views stand, for sources that do not know it themselves.
        """
