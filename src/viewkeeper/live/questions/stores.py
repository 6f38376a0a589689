"""A view's own stores, in this process: rows found by key, changed by every batch.

The warehouse keeps them for good, as tables that no reader sees; here they are as the view's manager last
left them, which may be a batch ahead of what is committed. Most of a store is an Arrow table that is
searched by a hash of the key; what has changed since is a small overlay of plain rows, folded into the
table when it has grown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import Row, Schema
from viewkeeper.protocols.messages import StoredPart
from viewkeeper.spark.arrow import COUNT, arrow_schema, signed_rows, table_of
from viewkeeper.views.upkeep import Store

OVERLAY_ROWS_MIN = 20_000
OVERLAY_SHARE_MAX = 0.25


class Stores:
    """The stores of one view, by name."""

    def __init__(self, stores: Iterable[Store], contents: Mapping[str, pa.Table]) -> None:
        """``contents``: the columns of each store in order, and the count."""
        self._tables = {s.name: StoreTable(s.schema, contents[s.name]) for s in stores}

    def rows(self, part: StoredPart) -> Bag:
        """The rows that a protocol asks for."""
        table = self._tables[part.store]
        if part.keys is None:
            return table.all_rows()
        return table.rows(part.key_columns, part.keys.to_bag())

    def change(self, changes: Mapping[str, Bag]) -> None:
        """What a batch makes of them."""
        for name, change in changes.items():
            self._tables[name].change(change)


class StoreTable:
    """One store. Rows are tuples in canonical form, with counts."""

    def __init__(self, schema: Schema, contents: pa.Table) -> None:
        self.schema = schema
        self._base = pa.Table.from_arrays(contents.columns, schema=arrow_schema(schema))
        self._overlay: dict[Row, int] = {}
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def all_rows(self) -> Bag:
        rows = [*signed_rows(self._base, self.schema), *self._overlay.items()]
        return Bag.signed(self.schema, rows)

    def rows(self, key_columns: Sequence[str], keys: Bag) -> Bag:
        """The rows whose key is among these; NULL equals NULL."""
        columns = tuple(key_columns)
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = _Index(self.schema, columns, self._base)
            index.note(self._overlay)
        wanted = {key for key, _ in keys}
        found = [
            (row, count)
            for row, count in signed_rows(self._base.take(index.candidates(keys)), self.schema)
            if index.key_of(row) in wanted
        ]
        found += [(row, self._overlay[row]) for key in wanted for row in index.recent(key)]
        return Bag.signed(self.schema, found)

    def change(self, change: Bag) -> None:
        """Add signed rows; a column too many (the transaction's number) is left out."""
        width = len(self.schema)
        for row, count in change:
            plain = row[:width]
            self._overlay[plain] = self._overlay.get(plain, 0) + count
            for index in self._indexes.values():
                index.note((plain,))
        if len(self._overlay) > max(OVERLAY_ROWS_MIN, self._base.num_rows * OVERLAY_SHARE_MAX):
            self._fold()

    def _fold(self) -> None:
        new = table_of(self.schema, Bag.signed(self.schema, self._overlay.items()))
        everything = pa.concat_tables([self._base, new])
        names = list(self.schema.names)
        summed = everything.group_by(names).aggregate([(COUNT, "sum")])
        kept = summed.filter(pc.not_equal(summed.column(f"{COUNT}_sum"), 0))
        columns = [*(kept.column(name) for name in names), kept.column(f"{COUNT}_sum")]
        self._base = pa.Table.from_arrays(columns, schema=self._base.schema).combine_chunks()
        self._overlay, self._indexes = {}, {}


class _Index:
    """Finds rows by some columns: in the base by hash, in the overlay by the key itself."""

    def __init__(self, schema: Schema, columns: tuple[str, ...], base: pa.Table) -> None:
        self._places = [schema.position(name) for name in columns]
        self._types = [base.schema.field(place).type for place in self._places]
        hashes = _hashes([base.column(place) for place in self._places], base.num_rows)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._recent: dict[Row, set[Row]] = {}

    def key_of(self, row: Row) -> Row:
        return tuple(row[place] for place in self._places)

    def note(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._recent.setdefault(self.key_of(row), set()).add(row)

    def recent(self, key: Row) -> Iterable[Row]:
        return self._recent.get(key, ())

    def candidates(self, keys: Bag) -> pa.Array:
        """Rows of the base whose hash is that of some key; a few may have another key."""
        rows = [key for key, _ in keys]
        arrays = [
            pa.chunked_array([pa.array([row[i] for row in rows], type)])
            for i, type in enumerate(self._types)
        ]
        wanted = np.unique(_hashes(arrays, len(rows)))
        starts = np.searchsorted(self._hashes, wanted, "left")
        ends = np.searchsorted(self._hashes, wanted, "right")
        ranges = [self._order[a:b] for a, b in zip(starts, ends, strict=True) if a < b]
        return pa.array(np.concatenate(ranges) if ranges else np.empty(0, np.int64), pa.int64())


_NULL = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(1099511628211)


def _hashes(columns: list[pa.ChunkedArray], rows: int) -> np.ndarray:
    """One hash per row over some columns; equal values of one type have equal hashes."""
    total = np.zeros(rows, np.uint64)
    for column in columns:
        total = total * _PRIME ^ _column_hashes(column)
    return total


def _column_hashes(column: pa.ChunkedArray) -> np.ndarray:
    nulls = column.is_null().to_numpy()
    if pa.types.is_floating(column.type):
        # Minus zero and zero are equal; all NaNs are.
        numbers = column.fill_null(0.0).to_numpy() + 0.0
        values = np.where(np.isnan(numbers), np.float64("nan"), numbers)
    elif pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        values = column.cast(pa.int64()).fill_null(0).to_numpy()
    elif pa.types.is_temporal(column.type):
        narrow = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        values = column.cast(narrow).cast(pa.int64()).fill_null(0).to_numpy()
    elif pa.types.is_binary(column.type):
        values = column.fill_null(b"").to_numpy(zero_copy_only=False)
    else:
        values = column.cast(pa.string()).fill_null("").to_numpy()
    from pandas.util import hash_array  # late: it takes most of a second to load

    hashes: np.ndarray = hash_array(values)
    return np.where(nulls, _NULL, hashes)
