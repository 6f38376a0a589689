"""What a project remembers of its warehouse: the newest entry of the ledger that it has seen committed.

A backup of a whole warehouse is right in itself. That it is not the newest state, only who has seen a newer
one can tell: so a run writes the head of the ledger into the project's folder with every commit, and who
reads the warehouse through the project compares. A run that takes the older copy over says so, and it is
the project's warehouse from then on.
"""

from __future__ import annotations

from pathlib import Path

from viewkeeper.live.json_files import make_private
from viewkeeper.project.config import ProjectConfig
from viewkeeper.warehouse import Warehouse
from viewkeeper.warehouse.entries import Entry
from viewkeeper.warehouse.head import Head, check_remembered, decoded, put
from viewkeeper.warehouse.ledger import Ledger
from viewkeeper.warehouse.storage import Storage

FILE = ".viewkeeper/head.json"


def remembered_head(folder: Path, storage: Storage) -> Head | None:
    """What the project has seen of this warehouse; None where it is nothing that can be read."""
    try:
        found = decoded((folder / FILE).read_bytes())
    except OSError:
        return None
    return found if found is not None and found.root == storage.root else None


def remember(folder: Path, storage: Storage, entry: Entry) -> None:
    """Write it down; raises OSError where that is not possible."""
    path, head = folder / FILE, Head.of(entry, storage.root)
    try:
        put(str(path), head, 0o600)
    except FileNotFoundError:
        make_private(path.parent)
        put(str(path), head, 0o600)


def refuse_older(folder: Path, storage: Storage) -> None:
    """Raise WarehouseError when the warehouse is an older copy of what the project has seen."""
    # Before the ledger: a commit in between makes the ledger newer, which is well.
    head = remembered_head(folder, storage)
    if head is not None:
        check_remembered(Ledger.open(storage).latest(), head, storage)


def opened_warehouse(config: ProjectConfig) -> Warehouse:
    """The project's warehouse, to read without a keeper; raises as `refuse_older` and `Warehouse.open` do."""
    opened = Warehouse.open(config.warehouse_path, config.warehouse_options)
    refuse_older(config.folder, opened.storage)
    return opened
