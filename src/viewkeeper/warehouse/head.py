"""The head: a small file that says which entry of the ledger was last acknowledged, and its hash.

A chain of hashes shows that nothing in it was changed; it can't show that its end is missing. So the writer
notes the newest entry's number and hash elsewhere: beside the ledger, where it finds a ledger that was put
back or whose newest commit was lost, and in the project's folder, where it finds an older copy of a whole warehouse.

It is written after the ledger is durable and is not synced itself, so it costs a commit next to nothing and is never
ahead of a ledger that is well. A head that can't be read, or whose own checksum is wrong, says nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.entries import Entry
from viewkeeper.warehouse.storage import Storage

FILE = "_head.json"
OLDER = "warehouse-older"
# A head is as long as the one before, unless the path of the warehouse is very long.
LENGTH = 512


@dataclass(frozen=True)
class Head:
    """The newest entry that somebody has seen."""

    entry: int
    chain: str
    txn: int
    # Where the warehouse lies, for who may have to do with several.
    root: str = ""

    @classmethod
    def of(cls, entry: Entry, root: str = "") -> Head:
        return cls(entry.entry, entry.chain, entry.last_txn, root)

    def encoded(self) -> bytes:
        said = vars(self)
        return json.dumps({**said, "check": _check(said)}).encode()


def decoded(content: bytes | None) -> Head | None:
    """The head that was written; None for what is none."""
    try:
        said = json.loads(content or b"")
        check = said.pop("check")
        return Head(**said) if check == _check(said) else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return None


def _check(said: dict[str, object]) -> str:
    text = json.dumps(said, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def read_head(storage: Storage) -> Head | None:
    """What the warehouse itself remembers; a store, which loses nothing it acknowledged, has none."""
    return decoded(storage.read_bytes(FILE)) if storage.is_local else None


def write_head(storage: Storage, entry: Entry) -> None:
    """Note the newest entry. Raises OSError where that is not possible."""
    if storage.is_local:
        put(storage.path(FILE), Head.of(entry))


def put(path: str, head: Head, mode: int = 0o666) -> None:
    """Write a head over the one before: half a head has a wrong checksum, so nothing is lost by it.

    It takes a tenth of the time of a new file under another name.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT, mode)
    try:
        content = head.encoded().ljust(LENGTH)
        os.pwrite(file, content, 0)
        if os.fstat(file).st_size != len(content):
            os.ftruncate(file, len(content))
    finally:
        os.close(file)


def forget_head(storage: Storage) -> None:
    if storage.is_local:
        storage.remove_file(storage.path(FILE))


def behind(storage: Storage, last_entry: int, head: Head) -> WarehouseError:
    """The error for a ledger that ends before what was acknowledged."""
    return WarehouseError(
        "ledger-behind",
        f"the ledger in {storage.root} is older than what was committed to it",
        detail=f"its newest entry is {last_entry}; entry {head.entry} (state {head.txn}) was committed",
        hint="part of it was lost or put back: restore the whole warehouse from a backup",
    )


def check_remembered(latest: Entry, head: Head | None, storage: Storage) -> None:
    """Raise when the warehouse is not the one that its project remembers, or is an older copy of it."""
    if head is None or latest.entry > head.entry:
        return
    if latest.entry == head.entry and latest.chain == head.chain:
        return
    raise WarehouseError(
        OLDER,
        f"the warehouse in {storage.root} is an older copy: what it shows is not the newest state",
        detail=f"its newest entry is {latest.entry} (state {latest.last_txn}); this project has seen "
        f"entry {head.entry} (state {head.txn})",
        hint="viewkeeper run goes on from this copy, where the sources still have what it lacks, and "
        "says so where they do not",
    )
