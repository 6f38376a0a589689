"""Small JSON files beside the project: read leniently, replaced as a whole.

They are how processes tell each other things that no correctness hangs on: whoever reads one finds what
somebody wrote, whole, or nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
    # Several processes may write the same file: a draft of its own for each.
    draft = path.with_suffix(f".{os.getpid()}.new")
    text = json.dumps(document, ensure_ascii=False, default=str)
    with open(draft, "w", encoding="utf-8", opener=_private) as file:
        file.write(text)
    draft.replace(path)


def make_private(folder: Path) -> None:
    """Make a folder, and what is missing above it, for its owner alone, whatever the umask says."""
    if not folder.exists():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
