"""What a row of the ledger says. Pure data, and its form in the ledger's table.

Every entry is whole: it says everything a reader needs to find every view at its state, so any
entry can be the last one left. Entries of kind ``epoch`` advance the transactions; the others
(``create``, ``lease``, ``consolidation``, ``vacuum``, ``publish``) keep the state and change how
it is stored, or by whom.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from viewkeeper.algebra.types import Schema
from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.columns import owner_of, schema_from_json, schema_to_json

# What `json.dumps` takes; a source's position is such a value and means nothing to us.
Json = Any

# The last word on a view that is kept no more: what it shows is gone, or its text does not fit.
ENDED = ("retired", "stopped")

LEDGER_SCHEMA = pa.schema(
    [
        ("entry", pa.int64()),
        ("kind", pa.string()),
        ("epoch", pa.int64()),
        ("first_txn", pa.int64()),
        ("last_txn", pa.int64()),
        ("oldest_txn", pa.int64()),
        ("token", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("positions", pa.string()),
        ("cut", pa.string()),
        ("views", pa.string()),
        ("statistics", pa.string()),
        ("places", pa.string()),
        ("chain", pa.string()),
    ]
)
# What only reads across groups need (`one_cut`), and no ledger of before had.
PLACES = "places"
# The hash of an entry and of the chain up to the one before; entries of an older Viewkeeper have none.
CHAIN = "chain"


@dataclass(frozen=True)
class Definition:
    """A view as the warehouse keeps it: its columns, its text, and whether other tools get a table.

    A view that evolved with its sources has another text than its user wrote (``origin``), and says
    what led to it (``evolved``). ``relations`` are those that the text is over, as they were then:
    `{"source.relation": {"columns": [[name, type], …], "key": […]}}`. ``tree`` is the definition that it
    evolved to (`views.storing`): not every one can be read back from its text.
    """

    schema: Schema
    text: str = ""
    publish: bool = False
    origin: str = ""
    relations: Json = None
    evolved: Json = None
    # For a view that was refilled: why, and from which positions to which no state was shown.
    rebuilt: Json = None
    tree: str = ""
    # What became of the relations that the view's files name, where names were changed or lost.
    lineage: Json = None

    @property
    def ending(self) -> str:
        """How the view came to its end with a schema change, one of `ENDED`; empty where it goes on.

        Its last state stays readable.
        """
        effect = str(self.evolved["effect"]) if self.evolved else ""
        return effect if effect in ENDED else ""

    @property
    def has_ended(self) -> bool:
        return self.ending != ""

    @property
    def written(self) -> str:
        """The text as its user wrote it."""
        return self.origin or self.text

    def as_json(self) -> Json:
        known = {
            "origin": self.origin,
            "relations": self.relations,
            "evolved": self.evolved,
            "rebuilt": self.rebuilt,
            "tree": self.tree,
            "lineage": self.lineage,
        }
        return {
            "schema": schema_to_json(self.schema),
            "text": self.text,
            "publish": self.publish,
            **{name: value for name, value in known.items() if value},
        }

    @classmethod
    def from_json(cls, value: Json) -> Definition:
        return cls(**(value | {"schema": schema_from_json(value["schema"])}))


@dataclass(frozen=True)
class Published:
    """The version of a view's plain table, and the transaction it shows."""

    version: int
    txn: int
    # Of the view: one number has two extents when it was refilled without a transaction.
    incarnation: int = 0
    # Of the version's files, as a view's state has one.
    seal: str = ""


@dataclass(frozen=True)
class ViewState:
    """Where a view stands: the version of its table, and what that version can tell.

    The version serves every state from ``base_txn`` on: rows numbered at most ``base_txn`` are the
    sum of all before, later ones are single changes. An *incarnation* is the time between two
    replacements of the whole extent (a new schema, a reload); no number is valid across two.
    """

    version: int
    incarnation: int
    since_txn: int
    base_txn: int
    base_rows: int
    base_distinct: bool
    log_rows: int
    log_files: int
    definition_version: int
    definition: Definition
    published: Published | None = None
    # The view's own cut: how far each of its sources has been read for it.
    positions: Mapping[str, Json] = field(default_factory=dict)
    # Views that some transaction was seen to change together with this one.
    tied: tuple[str, ...] = ()
    # Schema changes that the definition is behind, though the positions may be before them.
    taken: tuple[Json, ...] = ()
    # Of the files that the version names (`checksums.seal_of`); none in what an older Viewkeeper wrote.
    seal: str = ""

    @property
    def schema(self) -> Schema:
        return self.definition.schema

    def as_json(self) -> Json:
        said = self.__dict__ | {
            "positions": dict(self.positions),
            "definition": self.definition.as_json(),
            "published": asdict(self.published) if self.published else None,
        }
        # An older Viewkeeper reads what it knows.
        return {
            name: value
            for name, value in said.items()
            if name not in ("tied", "taken", "seal") or value
        }

    @classmethod
    def from_json(cls, value: Json) -> ViewState:
        published = Published(**value["published"]) if value["published"] else None
        definition = Definition.from_json(value["definition"])
        read = {"definition": definition, "published": published}
        lists = {name: tuple(value.get(name, ())) for name in ("tied", "taken")}
        return cls(**(value | read | lists))


@dataclass(frozen=True)
class Tally:
    """How many rows one epoch brought into a view and took out of it; ``rows`` were stored."""

    rows: int = 0
    inserted: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Entry:
    """One row of the ledger. ``first_txn > last_txn`` when it brought no transaction."""

    entry: int
    kind: str
    epoch: int
    first_txn: int
    last_txn: int
    oldest_txn: int
    token: int
    committed_at: dt.datetime
    positions: Mapping[str, Json] = field(default_factory=dict)
    cut: Json = None
    # JSON text until somebody asks: a ledger may be long, and a reader wants few entries of it.
    views_json: str = "{}"
    statistics: Mapping[str, Tally] = field(default_factory=dict)
    # Which transaction each number stands for, encoded (`places.Places`); only where it was asked for.
    places: str = ""
    chain: str = ""

    @cached_property
    def views(self) -> dict[str, ViewState]:
        """Every view's state, by name."""
        with understood():
            return {n: ViewState.from_json(v) for n, v in json.loads(self.views_json).items()}

    def view(self, name: str) -> ViewState | None:
        """One view's state; a walk through many entries asks for no more."""
        if "views" in self.__dict__:
            return self.views.get(name)
        with understood():
            value = json.loads(self.views_json).get(name)
            return None if value is None else ViewState.from_json(value)

    @property
    def shown_views(self) -> dict[str, ViewState]:
        """The views that are for people: not what is stored beside them."""
        return {name: state for name, state in self.views.items() if owner_of(name) is None}

    @property
    def shown_statistics(self) -> dict[str, Tally]:
        """What the epoch did to the views that are for people."""
        return {name: t for name, t in self.statistics.items() if owner_of(name) is None}

    @property
    def serves_from(self) -> int:
        """The first transaction number whose state this entry holds, as far as its log goes."""
        return min(self.first_txn, self.last_txn)


@contextmanager
def understood() -> Iterator[None]:
    """What can't be read as an entry is not ours, damaged, or of a version that knows more."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        raise WarehouseError(
            "ledger-unreadable",
            "an entry of the warehouse's ledger can't be understood",
            detail=f"{type(error).__name__}: {error}",
            hint="was it written by a newer Viewkeeper? then use that one; if not, it is damaged or "
            "another program's: restore the warehouse from a backup, or choose another path",
        ) from None


def views_to_json(views: Mapping[str, ViewState]) -> str:
    return _dumps({name: state.as_json() for name, state in views.items()})


def to_arrow(entries: list[Entry]) -> pa.Table:
    """Entries as rows of the ledger's table."""
    return pa.Table.from_pylist([_row(entry) for entry in entries], schema=LEDGER_SCHEMA)


def chained(entry: Entry, before: Entry | None) -> Entry:
    """The entry as the next link after the one before."""
    return replace(entry, chain=_link(_row(entry), "" if before is None else before.chain))


def from_arrow(table: pa.Table) -> tuple[Entry, ...]:
    """Entries in order of their numbers; raises WarehouseError where their chain is broken."""
    with understood():
        rows = table.sort_by("entry").to_pylist()
        for before, row in pairwise(rows):
            if row.get(CHAIN) and row[CHAIN] != _link(row, before.get(CHAIN) or ""):
                raise WarehouseError(
                    "ledger-damaged",
                    f"entry {row['entry']} of the warehouse's ledger does not follow entry {before['entry']}",
                    detail="its hash is not that of its content and of the chain before it",
                    hint="restore the warehouse from a backup",
                )
        return tuple(map(_entry, rows))


def _link(row: Mapping[str, Any], before: str) -> str:
    """Over all that an entry says but its places, which not every reader has at hand."""
    hasher = hashlib.blake2b(before.encode(), digest_size=16)
    for name in _HASHED:
        value = row[name]
        told = (
            value.astimezone(dt.UTC).isoformat() if isinstance(value, dt.datetime) else str(value)
        )
        # With its length before it: what moves from one column to the next is another entry.
        content = told.encode("utf-8", "surrogatepass")
        hasher.update(b"%d " % len(content))
        hasher.update(content)
    return hasher.hexdigest()


def _row(entry: Entry) -> dict[str, object]:
    tallies = {view: asdict(tally) for view, tally in entry.statistics.items()}
    return {name: getattr(entry, name) for name in _PLAIN} | {
        "positions": _dumps(dict(entry.positions)),
        "cut": _dumps(entry.cut),
        "views": entry.views_json,
        "statistics": _dumps(tallies),
        PLACES: entry.places or None,
        CHAIN: entry.chain or None,
    }


def _entry(row: dict[str, Any]) -> Entry:
    tallies = json.loads(row["statistics"])
    return Entry(
        **{name: row[name] for name in _PLAIN},
        positions=json.loads(row["positions"]),
        cut=json.loads(row["cut"]),
        views_json=row["views"],
        statistics={view: Tally(**tally) for view, tally in tallies.items()},
        places=row.get(PLACES) or "",
        chain=row.get(CHAIN) or "",
    )


_PLAIN = (
    "entry", "kind", "epoch", "first_txn", "last_txn", "oldest_txn", "token", "committed_at",
)  # fmt: skip
_HASHED = (*_PLAIN, "positions", "cut", "views", "statistics")


def _dumps(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
