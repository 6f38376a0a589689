"""Rows with intervals, as versions: what holds of a row at a time, in one line instead of many that cancel.

Lines of one row whose intervals overlap add up. Where each of them begins the sum rises by its count, and
behind its end it falls again; between two such places nothing happens, so that is one version.

Most lines of an answer are the only ones of their row, and stay as they are: they are set aside first,
column by column, for a value that occurs once is enough to tell.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.spark.arrow import COUNT
from viewkeeper.spark.matching import Numbers, are_scattered, combined_numbers, small_numbers


def versions(table: pa.Table, lo: str, hi: str) -> pa.Table:
    """The lines with their integer columns ``lo`` ≤ ``hi``, so that no two of one row overlap."""
    rest = [name for name in table.column_names if name not in (lo, hi, COUNT)]
    alone, several = _set_aside([table.column(name) for name in rest], table.num_rows)
    if len(alone):
        holds = pc.and_(
            pc.less_equal(table.column(lo), table.column(hi)),
            pc.not_equal(table.column(COUNT), 0),
        )
        single = table.take(pa.array(alone[np.asarray(holds)[alone]]))
        others = _versions(table.take(pa.array(several)), lo, hi, rest)
        return pa.concat_tables([single, others])
    return _versions(table, lo, hi, rest)


def _versions(table: pa.Table, lo: str, hi: str, rest: list[str]) -> pa.Table:
    rows = _numbered([table.column(name) for name in rest], table.num_rows)
    first, last, counts = (table.column(name).to_numpy() for name in (lo, hi, COUNT))
    spans = np.flatnonzero(last >= first)
    # One step up and one down for every line, in the order of rows and of places.
    lines = np.concatenate([spans, spans])
    places = np.concatenate([first[spans], last[spans] + 1])
    steps = np.concatenate([counts[spans], -counts[spans]])
    order = np.lexsort((places, rows[lines]))
    lines, places, steps = lines[order], places[order], steps[order]
    changes = (np.diff(rows[lines]) != 0) | (np.diff(places) != 0)
    begins = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), bool), changes]))
    if len(begins):
        steps = np.add.reduceat(steps, begins)
    moves = np.flatnonzero(steps)
    lines, places, steps = lines[begins[moves]], places[begins[moves]], steps[moves]
    # The steps of a row add up to nothing, so the sum begins again at every row by itself.
    levels = np.cumsum(steps)
    there = np.flatnonzero(levels)
    found = table.take(pa.array(lines[there]))
    for name, values in ((lo, places[there]), (hi, places[there + 1] - 1), (COUNT, levels[there])):
        position = found.schema.get_field_index(name)
        found = found.set_column(position, found.schema.field(position), pa.array(values))
    return found


def _set_aside(columns: list[pa.ChunkedArray], lines: int) -> tuple[Numbers, Numbers]:
    """Lines that are surely the only ones of their row, and those that may not be."""
    several: Numbers = np.arange(lines)
    for column in columns:
        if not len(several):
            break
        found = column if len(several) == lines else column.take(pa.array(several))
        if are_scattered(found):
            several = several[_may_repeat(found.to_numpy())]
            found = column.take(pa.array(several))
        codes = small_numbers(found)
        several = several[np.bincount(codes)[codes] > 1]
    is_alone = np.ones(lines, bool)
    is_alone[several] = False
    return np.flatnonzero(is_alone), several


def _may_repeat(values: Numbers) -> npt.NDArray[np.bool_]:
    """Whether another value ends with the same bits: few that occur once do, and all that occur twice."""
    endings = values & ((1 << (2 * len(values)).bit_length()) - 1)
    is_shared: npt.NDArray[np.bool_] = np.bincount(endings)[endings] > 1
    return is_shared


def _numbered(columns: list[pa.ChunkedArray], lines: int) -> Numbers:
    """A number for every line, the same for the same values; NULL is a value here."""
    if not columns:
        return np.zeros(lines, np.int64)
    return reduce(combined_numbers, map(small_numbers, columns))
