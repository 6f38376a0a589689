"""The ledger: the Delta table ``_epochs``, whose last row is the only truth about the warehouse.

A row is appended exactly on top of the ledger that the writer has read, so two writers can never
both append the same number: the ledger itself is the fence. Its small files are merged as it grows,
in the same commits that append rows, so that reading it stays cheap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.errors import UsageError, WarehouseError
from viewkeeper.warehouse.checksums import LEDGER, checked_name, opened
from viewkeeper.warehouse.datafiles import encoded
from viewkeeper.warehouse.entries import (
    CHAIN,
    LEDGER_SCHEMA,
    PLACES,
    Entry,
    chained,
    from_arrow,
    to_arrow,
    understood,
)
from viewkeeper.warehouse.head import behind, forget_head, read_head
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.tables import Addition, Conflict, Table

FOLDER = "_epochs"
MERGED_FILES = 32
# How many entries are made of a file's rows at a time by who goes back from the newest.
ENTRIES_AT_ONCE = 16
_NUMBERS = ("entry", "first_txn", "last_txn")
# What a ledger of an older Viewkeeper may lack.
_ADDED = (PLACES, CHAIN)
_ORDINARY = tuple(name for name in LEDGER_SCHEMA.names if name != PLACES)
# Files that were merged away are remembered in every checkpoint for so long; a week, if nothing is said.
_FORGETFUL = {"delta.deletedFileRetentionDuration": "interval 1 hours"}


@dataclass(frozen=True)
class LedgerFile:
    """One file of the ledger and the numbers of the entries in it."""

    path: str
    size: int
    rows: int
    first_entry: int
    last_entry: int


class Ledger:
    """The ledger at one version. A reader opens a new one for every look; a writer keeps his."""

    def __init__(self, storage: Storage, table: Table) -> None:
        self._storage = storage
        self._table = table
        self._files = _files_of(table)
        _check_tiles(storage, self._files)

    @classmethod
    def create(cls, storage: Storage, first: Entry) -> Ledger:
        """A new ledger with its first entry. Raises UsageError when there is one already.

        A ledger without entries was left by a process that died right here: it is taken over.
        """
        try:
            table = Table.open(storage, FOLDER) or Table.create(
                storage, FOLDER, LEDGER_SCHEMA, _FORGETFUL
            )
            ledger = cls(storage, table)
            if not ledger._files:
                forget_head(storage)
                ledger.append(chained(first, None))
                return ledger
        except Conflict:
            pass  # somebody else was faster
        raise UsageError(
            "warehouse-exists",
            f"there is already a warehouse in {storage.root}",
            hint="open it, or choose another place",
        )

    @classmethod
    def open(cls, storage: Storage) -> Ledger:
        """The ledger as it is now. Raises UsageError when there is none, WarehouseError for a damaged one."""
        # Before the ledger: a commit in between makes the ledger newer than this head, not older.
        head = read_head(storage)
        table = Table.open(storage, FOLDER)
        if table is None or not (ledger := cls(storage, table))._files:
            raise UsageError(
                "no-warehouse",
                f"there is no warehouse in {storage.root}",
                hint="viewkeeper init makes one; or correct the warehouse's path",
            )
        if head is not None and ledger.last_entry < head.entry:
            raise behind(storage, ledger.last_entry, head)
        return ledger

    @classmethod
    def exists(cls, storage: Storage) -> bool:
        """Whether a ledger with at least one entry is there."""
        table = Table.open(storage, FOLDER)
        return table is not None and bool(_files_of(table))

    def latest(self) -> Entry:
        """The last entry; reads one file."""
        (table,) = self._tables(self._files[-1:], _ORDINARY)
        with understood():
            last = pc.index(table["entry"], self.last_entry).as_py()
            entry = from_arrow(table.slice(last, 1))[0]
        # Each version of the ledger brings one entry, the first one its empty table.
        if entry.chain and entry.entry != self._table.version - 1:
            raise _damaged(
                self._storage,
                f"version {self._table.version} of its table ends with entry {entry.entry}",
            )
        return entry

    @property
    def last_entry(self) -> int:
        return self._files[-1].last_entry

    def since(self, txn: int) -> tuple[Entry, ...]:
        """The entry that shows a transaction number, and all later ones; from the oldest, if none does.

        Of older entries, no more than their numbers is read.
        """
        for number in reversed(range(len(self._files))):
            (table,) = self._tables(self._files[number : number + 1], _NUMBERS)
            table = table.sort_by("entry")
            shows = pc.min_element_wise(table["first_txn"], table["last_txn"])
            found = pc.sum(pc.less_equal(shows, txn)).as_py()
            if found:
                return self.entries(table["entry"][found - 1].as_py() - 1)
        return self.entries()

    def backwards(self, entry: int) -> Iterator[Entry]:
        """The entries from one back to the oldest, with their places; reads no more than is taken."""
        for number in reversed(range(len(self._files))):
            if number and self._files[number - 1].last_entry >= entry:
                continue
            (table,) = self._tables(self._files[number : number + 1])
            with understood():
                table = table.filter(pc.less_equal(table["entry"], entry)).sort_by("entry")
                for end in range(table.num_rows, 0, -ENTRIES_AT_ONCE):
                    start = max(0, end - ENTRIES_AT_ONCE)
                    yield from reversed(from_arrow(table.slice(start, end - start)))

    def entries(self, after: int = -1, *, with_places: bool = False) -> tuple[Entry, ...]:
        """All entries that are kept, in order; with ``after``, only those with a greater number."""
        files = [file for file in self._files if file.last_entry > after]
        read = self._read(files, None if with_places else _ORDINARY)
        entries = tuple(entry for entry in read if entry.entry > after)
        if not entries:
            return ()
        numbers = [entry.entry for entry in entries]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            raise _damaged(
                self._storage,
                f"its entries are numbered {numbers[0]} to {numbers[-1]}, {len(numbers)} rows",
            )
        if after < 0 and not _reaches_back(entries):
            raise _damaged(self._storage, f"its entries before {numbers[0]} are gone")
        return entries

    def append(self, entry: Entry) -> None:
        """Add one entry on top of this ledger. Raises `Conflict` when it is no longer the newest.

        After any other error the caller can't know whether the entry got in: read the ledger again.
        """
        merged = self._files[len(self._files) - merged_tail([f.rows for f in self._files]) :]
        self._replace(merged, pa.concat_tables([*self._tables(merged), to_arrow([entry])]))

    def rewrite(self, entries: Sequence[Entry]) -> None:
        """Keep exactly these entries, in one file, in one commit. Raises `Conflict`."""
        self._replace(self._files, to_arrow(list(entries)))

    @property
    def paths(self) -> frozenset[str]:
        """The data files that this version names, as paths of the file system."""
        return frozenset(self._storage.path(FOLDER, file.path) for file in self._files)

    @property
    def version(self) -> int:
        return self._table.version

    def _replace(self, old: Sequence[LedgerFile], rows: pa.Table) -> None:
        content = encoded(rows)
        name = checked_name("entries", content)
        self._storage.write_new(content, FOLDER, name)
        range = pc.min_max(rows.column("entry")).as_py()
        statistics = json.dumps(
            {
                "numRecords": rows.num_rows,
                "minValues": {"entry": range["min"]},
                "maxValues": {"entry": range["max"]},
            }
        )
        addition = Addition(name, len(content), statistics)
        self._table.commit(LEDGER_SCHEMA, [addition], [file.path for file in old])
        kept = [file for file in self._files if file not in old]
        file = LedgerFile(name, len(content), rows.num_rows, range["min"], range["max"])
        self._files = [*kept, file]

    def _read(
        self, files: Sequence[LedgerFile], columns: Sequence[str] | None
    ) -> tuple[Entry, ...]:
        tables = self._tables(files, columns)
        if not tables:
            return ()
        with understood():
            return from_arrow(pa.concat_tables(tables))

    def _tables(
        self, files: Sequence[LedgerFile], columns: Sequence[str] | None = None
    ) -> list[pa.Table]:
        """The files' rows: all columns, also where a file of before lacks one, or some."""
        tables = []
        with storage_errors(f"read the ledger in {self._storage.root}"):
            for file in files:
                path = self._storage.path(FOLDER, file.path)
                reader = opened(self._storage, path, file.size, LEDGER)
                table = reader.read(None if columns is None else list(columns))
                numbers = pc.min_max(table["entry"]).as_py()
                if (table.num_rows, *numbers.values()) != (
                    file.rows, file.first_entry, file.last_entry,
                ):  # fmt: skip
                    raise _damaged(self._storage, f"its table tells wrong numbers of {file.path}")
                for name in () if columns is not None else _ADDED:
                    if name not in table.column_names:
                        nothing = pa.nulls(table.num_rows, LEDGER_SCHEMA.field(name).type)
                        table = table.append_column(name, nothing)
                if columns is None:
                    table = table.select(LEDGER_SCHEMA.names)
                tables.append(table)
        return tables


def merged_tail(rows: Sequence[int]) -> int:
    """How many of the last files to merge with a new one-row file, given all files' row counts.

    Like carrying in a number of base 32: a row is rewritten once per digit, so appending n entries
    writes n · log₃₂ n rows, and at most 31 files per digit are ever there.
    """
    merged, limit = 0, 1
    while True:
        rest = len(rows) - merged
        same = 0
        while same < rest and rows[rest - 1 - same] <= limit:
            same += 1
        if same < MERGED_FILES - 1:
            return merged
        merged, limit = merged + same, limit * MERGED_FILES


def _files_of(table: Table) -> list[LedgerFile]:
    rows = table.arrow_actions().to_pylist()
    with understood():
        files = [
            LedgerFile(
                row["path"],
                row["size_bytes"],
                row["num_records"],
                row["min.entry"],
                row["max.entry"],
            )
            for row in rows
        ]
        files.sort(key=lambda file: file.last_entry)
    return files


def _reaches_back(entries: Sequence[Entry]) -> bool:
    """Whether the oldest entry may be the oldest: the first of all, or one that a vacuum has kept.

    A file that is lost at the beginning leaves no gap between the others.
    """
    if entries[0].entry == 0:
        return True
    is_oldest = entries[0].serves_from <= entries[-1].oldest_txn
    return is_oldest and any(entry.kind == "vacuum" for entry in entries)


def _check_tiles(storage: Storage, files: Sequence[LedgerFile]) -> None:
    """Raise unless the files hold one entry after the other, each once: none is lost, none came back."""
    wrong = [f for f in files if f.rows != f.last_entry - f.first_entry + 1]
    wrong += [b for a, b in pairwise(files) if b.first_entry != a.last_entry + 1]
    if wrong:
        raise _damaged(storage, f"its file {wrong[0].path} does not follow the one before")


def _damaged(storage: Storage, found: str) -> WarehouseError:
    return WarehouseError(
        "ledger-damaged",
        f"the ledger in {storage.root} has gaps or doubled entries",
        detail=found,
        hint="restore the warehouse from a backup",
    )
