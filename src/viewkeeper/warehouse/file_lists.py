"""Which files a version of a view's table names, written down beside its Delta log.

A state is read from the last version that rests on one base (`states`), weeks after it was committed. The
log that leads to that version can't stay as long: every commit looks through all of it. So when a base comes
to its end, by a fold, a new extent or the end of the view, the files of its last version are listed here, and
the log needs to remember no more than readers under way do (`trimming`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.checksums import damaged
from viewkeeper.warehouse.columns import owner_of
from viewkeeper.warehouse.datafiles import DataFile
from viewkeeper.warehouse.storage import Storage
from viewkeeper.warehouse.tables import Table

# Beginning with an underscore: not for other tools.
FOLDER = "_lists"
# In a table whose bases have all been listed when they ended.
COMPLETE = "complete"


def list_name(version: int) -> str:
    """The path of a version's list inside the table's folder."""
    return f"{FOLDER}/{version:020}.json"


def begin_lists(storage: Storage, folder: str) -> None:
    """For a new table: no base has ended yet."""
    storage.make_folder(folder, FOLDER)
    storage.write_bytes(b"", folder, FOLDER, COMPLETE)


def are_complete(storage: Storage, folder: str) -> bool:
    """Whether no base of the table ended without a list; older warehouses have tables that did."""
    return storage.read_bytes(folder, FOLDER, COMPLETE) is not None


def write_list(storage: Storage, folder: str, version: int, files: Iterable[DataFile]) -> None:
    """A base ends with this version, which names these files."""
    rows = [[file.path, file.size, file.rows, file.min_txn, file.max_txn] for file in files]
    storage.make_folder(folder, FOLDER)
    storage.write_bytes(json.dumps(rows).encode(), folder, list_name(version))
    storage.sync(storage.path(folder, list_name(version)))


def read_list(storage: Storage, folder: str, version: int) -> tuple[DataFile, ...] | None:
    """The files that were listed for a version; None where none were."""
    found = storage.read_bytes(folder, list_name(version))
    try:
        return None if found is None else tuple(DataFile(*row) for row in json.loads(found))
    except (ValueError, TypeError) as error:
        view = folder.rpartition("/")[2]
        path = storage.path(folder, list_name(version))
        raise damaged(path, owner_of(view) or view, f"it can't be read: {error}") from None


def files_of(storage: Storage, folder: str, version: int) -> tuple[DataFile, ...]:
    """The files that a version names. Raises WarehouseError when that is no longer known."""
    listed = read_list(storage, folder, version)
    if listed is not None:
        return listed
    try:
        return Table.at(storage, folder, version).files()
    except WarehouseError:
        # Its base may have ended, and its log been trimmed, a moment ago.
        listed = read_list(storage, folder, version)
        if listed is None:
            raise
        return listed
