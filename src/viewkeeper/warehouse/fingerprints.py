"""A number for a bag of rows: equal bags have equal numbers, in whatever order and files the rows lie.

The sum of the rows' hashes, each times its signed count, modulo 2⁶⁴. So the number of a state is the number of
an earlier one plus that of the changes between.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.warehouse.columns import COUNT, RESERVED

MODULUS = 2**64
# Odd, so that nothing is lost by multiplying; a column's place matters.
_MIX = np.uint64(0x9E3779B97F4A7C15)
# Stands for NULL; no text that a type is written as begins with it.
_NULL = "\x00null"


def fingerprint_of(parts: Iterable[pa.Table]) -> int:
    """Of all rows of several tables; no more than one of them is here at a time."""
    return sum(map(fingerprint, parts)) % MODULUS


def fingerprint(counted: pa.Table) -> int:
    """Of the rows in the table's columns, each as often as ``_count`` says; ``_txn`` is none."""
    columns = [name for name in counted.column_names if name not in RESERVED]
    hashes = np.full(counted.num_rows, len(columns), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in columns:
            hashes = hashes * _MIX + _hashed(counted.column(name))
            hashes ^= hashes >> np.uint64(29)
        counts = counted.column(COUNT).to_numpy().astype(np.int64).view(np.uint64)
        return int(np.sum(hashes * counts, dtype=np.uint64))


def _hashed(column: pa.ChunkedArray) -> np.ndarray:
    """Values as text: a number has the same hash whether or not NULLs stand beside it."""
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        shown = [_NULL if value is None else value.hex() for value in column.to_pylist()]
        texts = np.array(shown, dtype=object)
    else:
        texts = pc.fill_null(pc.cast(column, pa.string()), _NULL).to_numpy(zero_copy_only=False)
    # Not by categories: pandas would take texts for equal that are so up to a NUL character.
    # Late: it takes most of a second to load, which `viewkeeper wait` need not spend.
    from pandas.util import hash_array

    hashed: np.ndarray = hash_array(np.asarray(texts, dtype=object), categorize=False)
    return hashed
