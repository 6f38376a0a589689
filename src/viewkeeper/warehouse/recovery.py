"""At open: make the tables what the ledger says, whatever the last writer was doing when he died.

The ledger's last entry is the truth. A table may be ahead of it (its commit came before the ledger's
and the ledger's never came), never behind.
"""

from __future__ import annotations

import json
from typing import Literal

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.entries import Entry, ViewState
from viewkeeper.warehouse.faults import failpoint
from viewkeeper.warehouse.reading import view_folder
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.tables import Table

Decision = Literal["keep", "restore", "damaged"]


def decision(named: int, latest: int, *, same_files: bool) -> Decision:
    """What to do with a table whose version the ledger names, given its latest version. Pure."""
    if latest < named:
        return "damaged"
    return "keep" if same_files else "restore"


def recovered_tables(storage: Storage, entry: Entry) -> dict[str, Table]:
    """Every view's table with the content that the ledger names as its latest version."""
    return {view: _recovered(storage, view, state) for view, state in entry.views.items()}


def _recovered(storage: Storage, view: str, state: ViewState) -> Table:
    folder = view_folder(view)
    repair_torn_log(storage, folder)
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


def _damaged(storage: Storage, view: str, state: ViewState, found: str) -> WarehouseError:
    return WarehouseError(
        "table-damaged",
        f"the table of view {view} is not what the ledger says",
        detail=f"expected version {state.version} in {storage.uri(view_folder(view))}; {found}",
        hint="something else than Viewkeeper changed it: restore the warehouse from a backup",
    )


def repair_torn_log(storage: Storage, folder: str) -> None:
    """Remove the newest commit of a table when a power cut left it incomplete.

    A commit is made durable before anything rests on it, so an incomplete one was never
    acknowledged. Only local folders can be so left; stores show an object whole or not at all.
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
    if not _is_whole(content):
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
