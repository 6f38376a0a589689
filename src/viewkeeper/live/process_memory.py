"""Memory that is needed for a moment: how it comes from the system, and goes back."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa

# Of Linux's prctl: the same on all processors.
_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42


def give_back() -> None:
    """Let go of garbage, and have the allocators return what is free.

    Left to themselves they keep it for the next who asks, each thread's part apart from the others', and
    Python hardly looks for garbage in a run (`pipeline.COLLECTION`). Takes a tenth of a second: for
    after work that is large and rare.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    # Only the GNU C library has it.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def allow_huge_pages(allowed: bool) -> bool:
    """Whether this process may get memory two megabytes at a time; gives what it was.

    The tables of a batch are made, joined and let go of within a second, and the allocators of Arrow and NumPy
    ask for huge pages for them. All of such a page is cleared, however little of it is used: that took a third
    of our time in a backlog. Only Linux has them.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return allowed
    was_allowed = bool(prctl(_GET_THP_DISABLE, 0, 0, 0, 0) == 0)
    prctl(_SET_THP_DISABLE, int(not allowed), 0, 0, 0)
    return was_allowed
