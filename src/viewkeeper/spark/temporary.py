"""Temporary folders of this process, all below one, and the end of those that killed processes left.

A folder belongs to a process as long as that holds the lock of a file in it. The system lets go of a lock
when its process dies, however it does; so a process that gets it may clear the folder away. Numbers of processes
would not do: in another container, which shares the folder of temporary files, they mean others.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

_PREFIX = "viewkeeper-run-"
_LOCK = "in-use"
# Between its making and its locking a folder looks as if it had no owner.
YOUNG_SECONDS = 60.0

_folders: dict[Path, Path] = {}
_guard = threading.Lock()


def temporary_folder(name: str, parent: Path | None = None) -> Path:
    """A new folder, below the one of this process in ``parent``; remove it when it is done with."""
    place = Path(tempfile.gettempdir()) if parent is None else parent
    with _guard:
        if place not in _folders or not _folders[place].exists():
            _folders[place] = _locked_folder(place)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_folders[place]))


def _locked_folder(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    clear_left_behind(place)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    with contextlib.suppress(
        OSError
    ):  # some network's disks know no locks: then it is never cleared
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def clear_left_behind(place: Path) -> list[Path]:
    """Remove what dead processes of the same user left there, and say what it was."""
    cleared = []
    for folder in sorted(place.glob(f"{_PREFIX}*")):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < YOUNG_SECONDS:
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                cleared.append(folder)
            finally:
                os.close(lock)
    return cleared
