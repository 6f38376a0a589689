"""Verify a warehouse: every file that a state needs is read through and held against what was written.

The ledger first, from its head to its oldest entry: files, numbers, chain. Then, for every view and store, the
versions that states are read from: do they name the files that the ledger sealed, and is each file there, as long
as it was, with the checksum in its name. Published tables the same way. Nothing is written, no lease is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.checksums import LEDGER, checksum_in, verify_file
from viewkeeper.warehouse.columns import owner_of
from viewkeeper.warehouse.datafiles import DataFile
from viewkeeper.warehouse.entries import Entry, ViewState
from viewkeeper.warehouse.file_lists import files_of
from viewkeeper.warehouse.head import Head, check_remembered
from viewkeeper.warehouse.ledger import FOLDER, Ledger
from viewkeeper.warehouse.publishing import published_files, published_folder
from viewkeeper.warehouse.reading import PART_ROWS, check_seal, sealed_as, view_folder
from viewkeeper.warehouse.retention import bases_of
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.tables import Table

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Damage:
    """What is damaged: a file, whose it is, the states that need it, and what was expected and found."""

    view: str
    file: str
    states: tuple[int, int]
    error: WarehouseError

    def as_dict(self) -> dict[str, Any]:
        first, last = self.states
        states = {"from": first, "to": last}
        return {
            "view": self.view,
            "file": self.file,
            "states": states,
            "error": self.error.as_dict(),
        }


@dataclass
class Verification:
    """What was looked at, and what was found."""

    files: int = 0
    size: int = 0
    entries: int = 0
    damages: list[Damage] = field(default_factory=list)
    # Files that an older Viewkeeper wrote: their size and their pages were looked at, no more is known.
    unchecked: int = 0

    def as_dict(self) -> dict[str, Any]:
        told = vars(self) | {"damages": [damage.as_dict() for damage in self.damages]}
        return {"ok": not self.damages, **told}


@dataclass(frozen=True)
class _Named:
    """A file that some states need."""

    view: str
    folder: str
    file: DataFile
    states: tuple[int, int]


def verify(
    storage: Storage,
    views: Collection[str] = (),
    *,
    remembered: Head | None = None,
    progress: Progress = lambda done, total: None,
) -> Verification:
    """Look at the ledger and all that these views (all, if none is named) are read from."""
    found = Verification()
    try:
        ledger = Ledger.open(storage)
        latest = ledger.latest()
        entries = ledger.entries(with_places=True)
        check_remembered(latest, remembered, storage)
    except WarehouseError as error:
        found.damages.append(Damage(LEDGER, FOLDER, (0, 0), error))
        return found
    found.entries = len(entries)
    named = {(each.folder, each.file.path): each for each in _named(storage, entries, views, found)}
    total, done = sum(each.file.size for each in named.values()), 0
    for each in named.values():
        _verify_one(storage, each, found)
        done += each.file.size
        progress(done, total)
    return found


def _named(
    storage: Storage, entries: tuple[Entry, ...], views: Collection[str], found: Verification
) -> Iterator[_Named]:
    """The files that the states are read from; what is not known of them is damage."""
    latest = entries[-1]
    for name, bases in bases_of(entries).items():
        view = owner_of(name) or name
        if views and view not in views:
            continue
        states = {e.views[name].version: e.views[name] for e in entries if name in e.views}
        for number, base in enumerate(bases):
            span = max(base.base_txn, latest.oldest_txn), base.reached
            if base.reached < latest.oldest_txn and number < len(bases) - 1:
                continue  # no state that is kept is read from it
            folder = view_folder(name)
            try:
                files = files_of(storage, folder, base.version)
                check_seal(storage, name, states[base.version], files)
                yield from (_Named(view, folder, file, span) for file in files)
            except WarehouseError as error:
                found.damages.append(Damage(view, folder, span, error))
    for name, state in latest.views.items():
        if state.published is not None and (not views or name in views):
            yield from _published(storage, name, state, found)


def _published(
    storage: Storage, view: str, state: ViewState, found: Verification
) -> Iterator[_Named]:
    shown = state.published
    assert shown is not None
    folder, span = published_folder(view), (shown.txn, shown.txn)
    try:
        files = published_files(Table.at(storage, folder, shown.version))
        sealed_as(storage.uri(folder), view, shown.version, shown.seal, files)
        yield from (_Named(view, folder, file, span) for file in files)
    except WarehouseError as error:
        found.damages.append(Damage(view, folder, span, error))


def _verify_one(storage: Storage, named: _Named, found: Verification) -> None:
    path = storage.path(named.folder, named.file.path)
    found.files += 1
    found.size += named.file.size
    try:
        verify_file(storage, path, named.file.size, named.view)
        if checksum_in(path) is None:
            found.unchecked += 1
            _read_through(storage, path)
    except WarehouseError as error:
        where = f"{named.folder}/{named.file.path}"
        found.damages.append(Damage(named.view, where, named.states, error))


def _read_through(storage: Storage, path: str) -> None:
    """The pages of a file without a checksum have checksums of their own, mostly."""
    with storage_errors(f"read {path}"):
        reader = pq.ParquetFile(
            path, filesystem=storage.filesystem, page_checksum_verification=True
        )
        for _ in reader.iter_batches(PART_ROWS):
            pass
