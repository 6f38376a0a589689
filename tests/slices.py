"""How many seeds a test runs: its own number, what the environment says, or in `make check` a slice of them.

A test that takes its number from here is part of `make check` even where it is long by nature otherwise. What must be
found in a slice is found there on every run: seeds are the same each time.
"""

from __future__ import annotations

import os

CHECKING = os.environ.get("VIEWKEEPER_CHECK") == "1"
SLICE = 50


def seeds(count: int, variable: str = "", *, least: int = 1) -> int:
    """``count``, or what ``variable`` says; in `make check` a fiftieth of it, and at least ``least``."""
    if CHECKING:
        return max(least, count // SLICE)
    return int(os.environ.get(variable, count))
