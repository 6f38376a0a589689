"""At open: make the tables what the ledger says, whatever the last writer was doing when he died.

The ledger's last entry is the truth. A table may be ahead of it (its commit came before the ledger's
and the ledger's never came), never behind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from viewkeeper.errors import WarehouseError
from viewkeeper.failpoints import failpoint
from viewkeeper.warehouse.checksums import Damaged, damaged, verify_file
from viewkeeper.warehouse.columns import owner_of
from viewkeeper.warehouse.datafiles import DataFile
from viewkeeper.warehouse.entries import Entry, ViewState
from viewkeeper.warehouse.file_lists import files_of
from viewkeeper.warehouse.reading import check_seal, view_folder
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.tables import Table

Decision = Literal["keep", "restore", "damaged"]


def decision(named: int, latest: int, *, same_files: bool) -> Decision:
    """What to do with a table whose version the ledger names, given its latest version. Pure."""
    if latest < named:
        return "damaged"
    return "keep" if same_files else "restore"


@dataclass(frozen=True)
class Recovered:
    """The tables that can be committed to, and the views of which something is damaged, each with why."""

    tables: dict[str, Table]
    damaged: dict[str, Damaged]


def recovered_tables(storage: Storage, entry: Entry) -> Recovered:
    """Every view's table with the content that the ledger names as its latest version.

    What is damaged stops its view alone. A view is damaged with any of its stores.
    """
    found = Recovered({}, {})
    for view, state in entry.views.items():
        try:
            found.tables[view] = _recover(storage, view, state)
            check_files(storage, view, found.tables[view].files(), state)
        except Damaged as error:
            found.damaged[error.whose] = error
    return found


def damages_of(storage: Storage, entry: Entry) -> dict[str, WarehouseError]:
    """The views of which something cheap to look at is damaged, each with why. Writes nothing."""
    found: dict[str, WarehouseError] = {}
    for view, state in entry.views.items():
        try:
            files = files_of(storage, view_folder(view), state.version)
            check_files(storage, view, files, state)
        except WarehouseError as error:
            found[owner_of(view) or view] = error
    return found


def check_files(storage: Storage, view: str, files: Sequence[DataFile], state: ViewState) -> None:
    """Raise for what is cheap to find: other files than the ledger's, files that are gone or cut short.

    A store is read as a whole by its view's manager in a moment, so its files are read through here.
    """
    check_seal(storage, view, state, files)
    folder, whose = view_folder(view), owner_of(view) or view
    sizes = {info.path: info.size for info in storage.list_files(folder)}
    for file in files:
        path = storage.path(folder, file.path)
        if path not in sizes:
            raise damaged(path, whose, "the file is not there")
        if sizes[path] != file.size:
            raise damaged(path, whose, f"expected {file.size} bytes; found {sizes[path]}")
        if whose != view:
            verify_file(storage, path, file.size, whose)


def _recover(storage: Storage, view: str, state: ViewState) -> Table:
    folder = view_folder(view)
    repair_torn_log(storage, folder, state.version, view)
    try:
        return _settle(storage, view, state)
    except WarehouseError as error:
        if error.code != "storage-failed":
            raise
        # delta-rs can't make sense of the table's log.
        raise _damaged(storage, view, state, error.detail) from error


def _settle(storage: Storage, view: str, state: ViewState) -> Table:
    folder = view_folder(view)
    table = Table.open(storage, folder)
    if table is None:
        raise _damaged(storage, view, state, "there is no table")
    named = table if table.version <= state.version else Table.open(storage, folder, state.version)
    same = named is not None and named.content == table.content
    match decision(state.version, table.version, same_files=same):
        case "damaged":
            raise _damaged(storage, view, state, f"its latest version is {table.version}")
        case "restore":
            failpoint("during-recovery")
            table.restore(state.version)
        case "keep":
            pass
    return table


def _damaged(storage: Storage, view: str, state: ViewState, found: str) -> Damaged:
    return Damaged(
        "table-damaged",
        f"the table of view {view} is not what the ledger says",
        owner_of(view) or view,
        f"expected version {state.version} in {storage.uri(view_folder(view))}; {found}",
    )


def repair_torn_log(storage: Storage, folder: str, acknowledged: int, whose: str) -> None:
    """Remove the newest commit of a table when a power cut left it incomplete.

    A commit is made durable before anything rests on it, so an incomplete one was never
    acknowledged. Up to the version that was, a commit that can't be read is damaged, and stays for who
    can mend it. Only local folders can be so left; stores show an object whole or not at all.
    """
    if not storage.is_local:
        return
    log = storage.path(folder, "_delta_log") + "/"
    commits = [
        info.path
        for info in storage.list_files(folder, "_delta_log")
        if info.path == f"{log}{info.base_name}" and _is_commit(info.base_name)
    ]
    if not commits:
        return
    newest = commits[-1]
    with storage_errors(f"read {newest}"), storage.filesystem.open_input_stream(newest) as stream:
        content = bytes(stream.read())
    if _is_whole(content):
        return
    if int(newest.removeprefix(log)[:20]) <= acknowledged:
        raise damaged(newest, whose, "the newest commit of the table can't be read")
    storage.remove_file(newest)


def _is_commit(name: str) -> bool:
    stem, _, ending = name.partition(".")
    return ending == "json" and len(stem) == 20 and stem.isdigit()


def _is_whole(content: bytes) -> bool:
    try:
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return False
    return bool(lines)
