"""What was needed for a moment goes back to the system."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa


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
