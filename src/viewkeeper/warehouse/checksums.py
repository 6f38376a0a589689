"""Checksums of the warehouse's files: taken from memory when they are written, verified before rows are read.

A data file carries the hash of its bytes in its name, so whatever names the file (a Delta commit, a checkpoint, a
list) names its content, too. A view's state in the ledger holds the *seal* of its files, a sum over their
names and measures, and so it says which files are the state. The ledger's own entries are a chain of hashes
(`entries`). A changed bit in any of them makes two of these disagree, and a read ends with a name.

The hash is XXH3 (128 bits): it finds what a disk does to a file, at 20 GB/s. It is no signature: a user who may write the
warehouse can write right hashes, too.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.storage import Storage, storage_errors

if TYPE_CHECKING:
    from viewkeeper.warehouse.datafiles import DataFile

# A file up to this size is read whole, so that what is verified is what is decoded.
WHOLE_BYTES_MAX = 64 * 2**20
_CHUNK = 8 * 2**20
_MODULUS = 2**128
_NAMED = re.compile(r"-([0-9a-f]{32})\.parquet$")

_KNOWN_MAX = 100_000

DAMAGED = "file-damaged"
# Whose the ledger's files are.
LEDGER = "the ledger"


def checked_name(purpose: str, content: bytes | pa.Buffer) -> str:
    """A new file's name: unique, with the hash of its content."""
    return f"{purpose}-{uuid.uuid4().hex[:16]}-{checksum(content)}.parquet"


def checked(storage: Storage, path: str) -> str:
    """Put the hash of its content into the name of a file that Spark has just written; the new name."""
    with storage_errors(f"rename {path}"):
        with storage.filesystem.open_input_file(path) as source:
            found = _streamed(source)
        target = f"{path.removesuffix('.parquet')}-{found}.parquet"
        storage.filesystem.move(path, target)
    folder, _, name = path.rpartition("/")
    # What Hadoop keeps beside a local file goes by the name that it had.
    storage.remove_file(f"{folder}/.{name}.crc")
    return target.rpartition("/")[2]


def checksum(content: bytes | pa.Buffer) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def checksum_in(path: str) -> str | None:
    """The hash that a file's name carries; None for a file of an older Viewkeeper."""
    found = _NAMED.search(path)
    return None if found is None else found[1]


def seal_of(files: Iterable[DataFile]) -> str:
    """One number for a set of files, whatever their order: what the ledger knows them by."""
    return f"{sum(map(_measure, files)) % _MODULUS:032x}"


def resealed(seal: str, added: Iterable[DataFile], removed: Iterable[DataFile] = ()) -> str:
    """The seal of a set from which some files went and to which others came; none stays none."""
    if not seal:
        return ""
    total = int(seal, 16) + sum(map(_measure, added)) - sum(map(_measure, removed))
    return f"{total % _MODULUS:032x}"


def _measure(file: DataFile) -> int:
    told = f"{file.path}|{file.size}|{file.rows}|{file.min_txn}|{file.max_txn}"
    return xxhash.xxh3_128_intdigest(told.encode())


# -- reading --------------------------------------------------------------------------------------


def opened(storage: Storage, path: str, size: int, whose: str) -> pq.ParquetFile:
    """A Parquet file whose content is what was written; raises WarehouseError by name otherwise.

    ``size`` is what it should have; ``whose`` names the view, or the ledger. A file of an older Viewkeeper
    has no checksum but those of its pages, and not always these.
    """
    content = _content(storage, path, size, whose)
    with storage_errors(f"read {path} of {whose}"):
        if isinstance(content, pa.Buffer) and checksum_in(path):
            return pq.ParquetFile(pa.BufferReader(content))
        return pq.ParquetFile(path, filesystem=storage.filesystem, page_checksum_verification=True)


def verify_file(storage: Storage, path: str, size: int, whose: str) -> bool:
    """Read a file through and raise unless it is what was written; whether its name has a checksum."""
    _content(storage, path, size, whose)
    return checksum_in(path) is not None


def _content(storage: Storage, path: str, size: int, whose: str) -> pa.Buffer | None:
    """The verified bytes; None of a file that is too large to be kept."""
    with storage_errors(f"read {path} of {whose}"):
        try:
            source = storage.filesystem.open_input_file(path)
        except FileNotFoundError:
            raise damaged(path, whose, "the file is not there") from None
        with source:
            if source.size() != size:
                raise damaged(path, whose, f"expected {size} bytes; found {source.size()}")
            wanted = checksum_in(path)
            if size <= WHOLE_BYTES_MAX:
                content = source.read_buffer(size)
                found = checksum(content)
            else:
                content, found = None, _streamed(source)
    if wanted is not None and found != wanted:
        raise damaged(path, whose, f"expected the checksum {wanted}; found {found}")
    return content


def _streamed(source: pa.NativeFile) -> str:
    hasher = xxhash.xxh3_128()
    while len(part := source.read_buffer(_CHUNK)):
        hasher.update(part)
    return hasher.hexdigest()


class Damaged(WarehouseError):
    """Something on the disk is not what was written, and whose it is: a view, or the ledger."""

    def __init__(self, code: str, message: str, whose: str, detail: str) -> None:
        super().__init__(code, message, detail=detail, hint=repair_hint(whose))
        self.whose = whose


def damaged(path: str, whose: str, found: str) -> Damaged:
    return Damaged(DAMAGED, f"a file of {whose} is not what was written: {path}", whose, found)


def repair_hint(whose: str) -> str:
    """How to get on after damage."""
    if whose == LEDGER:
        return "restore the warehouse from a backup; viewkeeper verify says what else is damaged"
    return (
        f"viewkeeper rebuild {whose} fills it from its sources; viewkeeper verify says what else "
        "is damaged"
    )


class Verified:
    """Files that this process has read through, so that another reader need not wait for it again.

    For Spark, which reads by itself: it verifies the pages each time, and this the rest of the file once. A
    file counts as another one when its size, its time or its place on the disk has changed.
    """

    def __init__(self) -> None:
        self._known: set[tuple[str, int, int, int]] = set()
        self._lock = threading.Lock()

    def check(self, storage: Storage, path: str, size: int, whose: str) -> None:
        """Raises WarehouseError unless the file is what was written. A store's own checksums are trusted."""
        if not storage.is_local:
            return
        try:
            found = os.stat(path)
        except OSError:
            raise damaged(path, whose, "the file is not there") from None
        key = (path, found.st_size, found.st_mtime_ns, found.st_ino)
        if found.st_size == size and key in self._known:
            return
        verify_file(storage, path, size, whose)
        with self._lock:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known.add(key)


verified = Verified()
