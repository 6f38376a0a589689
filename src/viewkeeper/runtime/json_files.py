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
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may write the same file: a draft of its own for each.
    draft = path.with_suffix(f".{os.getpid()}.new")
    draft.write_text(json.dumps(document, ensure_ascii=False, default=str), encoding="utf-8")
    draft.replace(path)
