"""Small JSON files beside the project: read leniently, replaced as a whole."""

from __future__ import annotations

import contextlib
import json
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


def write_json(path: Path, document: Mapping[str, Any], *, must: bool = False) -> None:
    """Replace the file. Unless it ``must`` be, a folder that can't be written to is no error."""
    with contextlib.ExitStack() as stack:
        if not must:
            stack.enter_context(contextlib.suppress(OSError))
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        draft.replace(path)
