"""Small JSON files beside the project: read leniently, replaced as a whole.

They are how processes tell each other things that no correctness hangs on: a reader finds what
somebody wrote, whole, or nothing.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

# Files that were warned of.
_unwritten: set[Path] = set()


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file; empty when there is none, or nothing that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Replace the file; raises OSError where that is not possible."""
    make_private(path.parent)
    # Several processes may write the same file: each has its own draft.
    draft = path.with_suffix(f".{os.getpid()}.new")
    try:
        with open(draft, "w", encoding="utf-8", opener=_private) as file:
            file.write(json.dumps(document, ensure_ascii=False, default=str))
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def write_aside(path: Path, document: Mapping[str, Any]) -> bool:
    """Replace the file, or warn that it can't be; whether it was written.

    For what a run tells beside its work: nothing right or wrong hangs on it, so a full disk or a folder
    that may not be written to must not end the run. Warned of once, until the file was written again.
    """
    try:
        write_json(path, document)
    except OSError as error:
        if path not in _unwritten:
            _unwritten.add(path)
            why = error.strerror or str(error)
            log.warning("can't write %s: %s; the run goes on without it", path, why)
        return False
    _unwritten.discard(path)
    return True


def make_private(folder: Path) -> None:
    """Make a folder, and what is missing above it, for its owner alone, whatever the umask says."""
    if not folder.exists():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
