"""Deleting what no promised state needs: data files, old commits of the Delta logs, ledger rows.

First the ledger says that the old states are gone, then they go. A process that dies in between
leaves garbage for the next vacuum and nothing else. A file that any protected version names is
never touched; neither is a commit that leads to one.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyarrow.fs import FileInfo

from viewkeeper.errors import WarehouseError
from viewkeeper.failpoints import failpoint
from viewkeeper.warehouse.columns import owner_of
from viewkeeper.warehouse.commits import quiet_entry
from viewkeeper.warehouse.file_lists import COMPLETE, files_of, list_name, read_list
from viewkeeper.warehouse.file_lists import FOLDER as FOLDER_OF_LISTS
from viewkeeper.warehouse.ledger import FOLDER
from viewkeeper.warehouse.publishing import PUBLISHED, published_folder
from viewkeeper.warehouse.reading import VIEWS, check_seal, view_folder
from viewkeeper.warehouse.retention import Retention, VacuumPlan, vacuum_plan
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.tables import Table
from viewkeeper.warehouse.trimming import old_commits
from viewkeeper.warehouse.writer import Writer

logger = logging.getLogger(__name__)

_LOG = "_delta_log/"


@dataclass(frozen=True)
class VacuumReport:
    """What was deleted, and the oldest state that can still be read."""

    oldest_txn: int
    files: int
    size: int


def vacuum(writer: Writer, retention: Retention) -> VacuumReport:
    """Drop the states that retention no longer promises, and everything only they needed."""
    with writer.maintenance_lock, writer.lock:
        now = writer.clock()
        latest = writer.latest
        entries = writer.entries()
        plan = vacuum_plan(entries, retention, now)
        if plan.kept != entries or plan.oldest_txn != latest.oldest_txn:
            entry = replace(quiet_entry(latest, "vacuum", now), oldest_txn=plan.oldest_txn)
            writer.append(entry, plan.kept)
        with storage_errors("vacuum"):
            failpoint("vacuum-after-ledger")
        # Only this lock's holder writes data files (a consolidation would hold the other lock), so
        # what is unknown now was left behind by somebody who is gone.
        # Files carry the system's time, whatever the clock is that entries are dated by.
        doomed = _doomed(writer, plan, time.time() - retention.grace_seconds)
        # A view of the same name may be created as soon as the lock is free, with the same names in
        # its log; all other names are never used again.
        abandoned = _abandoned(writer.storage, plan)
        _delete(writer.storage, abandoned)
    _delete(writer.storage, doomed)
    gone = doomed + abandoned
    return VacuumReport(plan.oldest_txn, len(gone), sum(info.size for info in gone))


def _delete(storage: Storage, doomed: list[FileInfo]) -> None:
    for info in doomed:
        storage.remove_file(info.path)
        with storage_errors("vacuum"):
            failpoint("vacuum-after-file")


def _abandoned(storage: Storage, plan: VacuumPlan) -> list[FileInfo]:
    """Everything in tables of which no version is protected: of views dropped, or never committed."""
    found = [i for v in _folders(storage, VIEWS) if v not in plan.protected
             for i in storage.list_files(view_folder(v))]  # fmt: skip
    found += [i for v in _folders(storage, PUBLISHED) if v not in plan.protected_published
              for i in storage.list_files(published_folder(v))]  # fmt: skip
    # The logs last: until then a table can still be opened.
    return sorted(found, key=lambda info: _LOG in info.path)


def _doomed(writer: Writer, plan: VacuumPlan, grace_until: float) -> list[FileInfo]:
    storage = writer.storage
    doomed = _ledger_garbage(writer, grace_until)
    for view, versions in plan.protected.items():
        if (owner_of(view) or view) in writer.damaged:
            continue
        try:
            _check_seals(storage, plan, view, versions)
            doomed += _table_garbage(storage, view_folder(view), set(versions))
        except (WarehouseError, ValueError) as error:
            # What names the view's files is damaged: all of them stay for who mends it.
            logger.warning("%s", error)
    for view, versions in plan.protected_published.items():
        folder = published_folder(view)
        # Other tools read the latest version, whether or not the ledger got to hear of it.
        latest = Table.open(storage, folder)
        shown = set() if latest is None else {latest.version}
        doomed += _table_garbage(storage, folder, {*versions, *shown})
    return doomed


def _check_seals(storage: Storage, plan: VacuumPlan, view: str, versions: Iterable[int]) -> None:
    """Raise unless every protected version names the files that the ledger says it names."""
    states = {e.views[view].version: e.views[view] for e in plan.kept if view in e.views}
    for version in versions:
        if version in states:
            files = files_of(storage, view_folder(view), version)
            check_seal(storage, view, states[version], files)


def _folders(storage: Storage, parent: str) -> list[str]:
    root = storage.path(parent) + "/"
    names = {i.path.removeprefix(root).split("/")[0] for i in storage.list_files(parent)}
    return sorted(names)


def _table_garbage(storage: Storage, folder: str, versions: set[int]) -> list[FileInfo]:
    """Files of one table that none of the versions needs."""
    found = storage.list_files(folder)
    root = storage.path(folder) + "/"
    listed = {version: read_list(storage, folder, version) for version in sorted(versions)}
    needed = {f"{FOLDER_OF_LISTS}/{COMPLETE}", *map(list_name, versions)}
    for files in filter(None, listed.values()):
        needed.update(file.path for file in files)
    opened = [version for version, files in listed.items() if files is None]
    log = [info for info in found if _LOG in info.path]
    if opened:
        first = min(opened)
        table = Table.at(storage, folder, first)
        needed.update(table.arrow_actions()["path"].to_pylist())
        needed |= _added_after(storage, log, first)
    data = [
        info
        for info in found
        if _LOG not in info.path and info.path.removeprefix(root) not in needed
    ]
    return data + old_commits(log, min(opened, default=max(versions)))


def _added_after(storage: Storage, log: Iterable[FileInfo], version: int) -> set[str]:
    """All files that a later commit named: together with the version's own, those of all later ones."""
    added: set[str] = set()
    for info in log:
        if info.base_name.endswith(".json") and info.base_name[:20].isdigit():
            if int(info.base_name[:20]) <= version:
                continue
            with storage.filesystem.open_input_stream(info.path) as stream:
                lines = [json.loads(line) for line in stream.read().splitlines() if line.strip()]
            added.update(line["add"]["path"] for line in lines if "add" in line)
    return added


def _ledger_garbage(writer: Writer, grace_until: float) -> list[FileInfo]:
    """Ledger files merged away, once no reader can be about to open them, and old commits.

    The ledger is read at its newest version only.
    """
    named = writer.ledger.paths
    found = writer.storage.list_files(FOLDER)
    data = [i for i in found if _LOG not in i.path and i.path not in named]
    old = old_commits([i for i in found if _LOG in i.path], writer.ledger.version)
    return [i for i in data + old if i.mtime.timestamp() < grace_until]
