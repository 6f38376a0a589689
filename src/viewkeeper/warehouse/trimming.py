"""Keeps Delta logs short. Every commit looks through its table's whole log: one of a day would take seconds.

What may go are commits before the last checkpoint that leads to a version which some reader may still open: one
that was the newest within the grace period, or that the ledger names. Older states are found by their
`file_lists`. Data files are not touched; that is for `vacuum`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from pyarrow.fs import FileInfo

from viewkeeper.warehouse.file_lists import are_complete
from viewkeeper.warehouse.ledger import FOLDER
from viewkeeper.warehouse.reading import view_folder
from viewkeeper.warehouse.storage import Storage
from viewkeeper.warehouse.writer import Writer

LOG = "_delta_log"


def trim(writer: Writer, grace_seconds: float) -> int:
    """Delete what no reader opens any more of the logs; the number of files."""
    with writer.maintenance_lock:
        # A little longer than vacuum's: it goes by the ledger, whose entries come after the commits.
        until = time.time() - 1.1 * grace_seconds
        named = {view_folder(view): state.version for view, state in writer.latest.views.items()}
        doomed = _unneeded(writer.storage, FOLDER, writer.ledger.version, until)
        for folder, version in named.items():
            if are_complete(writer.storage, folder):
                doomed += _unneeded(writer.storage, folder, version, until)
        for info in doomed:
            writer.storage.remove_file(info.path)
    return len(doomed)


def _unneeded(storage: Storage, folder: str, named: int, until: float) -> list[FileInfo]:
    log = [info for info in storage.list_files(folder, LOG) if info.base_name[:20].isdigit()]
    return old_commits(log, min(named, newest_at(log, until)))


def newest_at(log: Iterable[FileInfo], moment: float) -> int:
    """The version that was the newest at a moment of the system's clock; 0 when all came later."""
    before = (
        int(info.base_name[:20])
        for info in log
        if info.base_name.endswith(".json") and info.mtime.timestamp() <= moment
    )
    return max(before, default=0)


def old_commits(log: Iterable[FileInfo], oldest_version: int) -> list[FileInfo]:
    """Commits and checkpoints not needed to open ``oldest_version`` or any later one.

    A version is opened from the last checkpoint before it; without one nothing can go.
    """
    numbered = [(int(i.base_name[:20]), i) for i in log if i.base_name[:20].isdigit()]
    checkpoints = [n for n, i in numbered if ".checkpoint" in i.base_name and n <= oldest_version]
    if not checkpoints:
        return []
    return [info for number, info in numbered if number < max(checkpoints)]
