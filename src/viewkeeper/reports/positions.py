"""Where a source's log stands, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def position_text(position: Any) -> str:
    """Short, comparable by eye, and without the marks that only tell histories apart."""
    match position:
        case None:
            return "none yet"
        case {"lsn": int(lsn)}:
            return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
        case {"file": str(file), "offset": int(offset)}:
            return f"{file} at {offset:,}"
        case {"seq": int(seq)}:
            return f"change {seq:,}"
        case Mapping():
            return json.dumps(dict(position), sort_keys=True)
        case _:
            return str(position)
