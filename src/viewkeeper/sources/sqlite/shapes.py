"""A relation's schema along the log: which rows belong to which, and where it changed.

The log says it itself: every row carries its layout and the column names that had vanished when it
was written. What no row shows (an added column) is seen by comparing the last known shape with the
catalog at the end of what was read.

A table whose changes were not all recorded since the last known place is *torn*: it was put there by
another one, or was without a trigger for a while. The log tells neither what happened to it nor when,
so that no row since then can be built on, of any relation: everything counts as it is at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any

from viewkeeper.algebra.types import Row
from viewkeeper.sources.interface import RelationSchema
from viewkeeper.sources.sqlite.catalog import Capture, Catalog, relation_schema
from viewkeeper.sources.sqlite.layout import WATCHED_COLUMNS_MAX, Layout
from viewkeeper.sources.sqlite.row_decoding import PoisonRow, decode_columns, rows_from

# The columns of a log table in front of the values.
SEQ, AT, TAG, SIGN, VANISHED, ID, VALUES = range(7)
ABSENT = -1
# Days that a clock can show, from the year 1 to 9999, as SQLite counts them.
_DAYS = (1721425.5, 5373484.5)


def are_written_by_us(rows: Sequence[Sequence[Any]], layout: Layout, *, is_whole: bool) -> bool:
    """Whether rows of a log are of the form that its triggers write; ``is_whole``: with their values.

    Who may write the file may write there, too. Values have their own judge: a `PoisonRow` names them.
    """
    if not rows:
        return True
    days = [row[AT] for row in rows]
    if set(map(type, days)) != {float} or not _DAYS[0] <= min(days) <= max(days) <= _DAYS[1]:
        return False
    if not is_whole:
        return True
    if len(rows[0]) != VALUES + len(layout.table.columns):
        return False
    is_signed = {row[SIGN] for row in rows} <= {-1, 1}
    return is_signed and {type(row[VANISHED]) for row in rows} == {int}


@dataclass(frozen=True)
class Shape:
    """What is known of a relation at a place in the log; part of a position, so plain data."""

    layout: int
    vanished: int
    dropped: int
    root_page: int
    fingerprint: str
    gap: bool = False
    # The table's row in sqlite_schema, 0 where that was not noted.
    row: int = 0

    def as_json(self) -> list[Any]:
        parts = (self.layout, self.vanished, self.dropped, self.root_page, self.fingerprint)
        return [*parts, self.gap, self.row]


@dataclass(frozen=True)
class Segment:
    """Rows of one relation that share a schema, in the log's order."""

    relation: str
    seqs: Sequence[int]
    signs: Sequence[int]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Turn:
    """The schema changed after the log's number ``place``."""

    relation: str
    place: int
    before: RelationSchema | None
    after: RelationSchema | None
    rewrites: bool
    renamed_columns: Mapping[str, str]
    renamed_to: str | None
    shape: Shape


def shape_of(capture: Capture) -> Shape | None:
    """The shape now; None when the table is not recorded at all."""
    if capture.layout is None:
        return None
    return Shape(
        capture.layout.number,
        capture.vanished,
        dropped_now(capture),
        capture.table.root_page,
        capture.schema.fingerprint,
        bool(capture.gap),
        capture.table.row,
    )


def dropped_now(capture: Capture) -> int:
    return sum(1 << place for place, name in enumerate(capture.names) if name is None)


def line_of(catalog: Catalog, relation: str, shape: Shape | None) -> list[Layout]:
    """The layouts whose logs have the relation's changes from a shape on, oldest first.

    A table that was renamed is the same table: its log goes on, until another one has its old name.
    """
    if shape is not None and shape.layout == ABSENT:
        capture = catalog.captures.get(relation)
        is_back = capture is not None and not capture.unrecorded
        return [capture.layout] if is_back and capture is not None and capture.layout else []
    if shape is None or shape.layout not in catalog.homes:
        return catalog.layouts_of(relation)
    home = catalog.homes[shape.layout]
    if home != relation and relation in catalog.captures:
        home = relation
    return [layout for layout in catalog.layouts_of(home) if layout.number >= shape.layout]


def captured(catalog: Catalog, relation: str, shape: Shape | None) -> Capture | None:
    """The table that has the relation's name, or had it at the shape's place; None when it is gone."""
    found = catalog.captures.get(relation)
    if found is None and shape is not None and shape.layout in catalog.alive:
        found = catalog.captures.get(catalog.homes[shape.layout])
    return found


def is_gone(catalog: Catalog, relation: str, shape: Shape | None) -> bool:
    """Whether no table has the name any more of a relation that was there."""
    return is_known(shape) and relation not in catalog.captures


def is_known(shape: Shape | None) -> bool:
    return shape is not None and shape.layout != ABSENT


def is_torn(catalog: Catalog, relation: str, shape: Shape | None) -> bool:
    """Whether rows of the relation may have changed unrecorded since it had the shape.

    The caller knows that its changes are recorded now.
    """
    capture = captured(catalog, relation, shape)
    if capture is None or shape is None or shape.layout == ABSENT:
        return False
    line = line_of(catalog, relation, shape)
    if shape.gap or capture.layout not in line or line[0].number != shape.layout:
        return True
    page, row = shape.root_page, shape.row
    for layout in line[1:]:
        if not layout.continues or not layout.table.is_same(page, row):
            return True
        page, row = layout.table.root_page, layout.table.row
    return not capture.table.is_same(page, row)


def inherited(catalog: Catalog, relation: str, shapes: Mapping[str, Shape]) -> Shape | None:
    """The shape of a relation that has had another name at the place where these were known."""
    for other, shape in shapes.items():
        if other not in catalog.captures and catalog.homes.get(shape.layout) == relation:
            walk = _Walk("", relation, shape, catalog, 0, 0)
            return replace(shape, fingerprint=walk.fingerprint_of(shape))
    return None


def first_shape(catalog: Catalog, relation: str, seq: int) -> Shape | None:
    """The shape of a relation that a position does not know: the one that setup found; None when its
    layout was made after that number of the log."""
    made = [layout for layout in catalog.layouts_of(relation) if layout.since <= seq]
    return _Walk("", relation, None, catalog, 0, 0).fresh(made[-1]) if made else None


class Tracker:
    """Follows one relation through the log of one feed."""

    def __init__(self, source: str, relation: str, shape: Shape | None) -> None:
        self._source, self._relation, self.shape = source, relation, shape

    def advance(
        self,
        catalog: Catalog,
        logged: Mapping[int, Sequence[Sequence[Any]]],
        start: int,
        end: int,
        at_end: bool,
    ) -> tuple[list[Segment], list[Turn]]:
        """What lies between two numbers of the log; ``at_end``: the catalog belongs to ``end``.

        Changes nothing by itself: the caller takes over the shape of each turn as it delivers it.
        """
        walk = _Walk(self._source, self._relation, self.shape, catalog, start, end)
        line = line_of(catalog, self._relation, walk.shape)
        for layout, after in pairwise([*line, None]):
            if layout is None:
                continue
            rows = logged.get(layout.number, ())
            if after is not None:
                # Triggers that were put back after they had been replaced record what others do.
                rows = [row for row in rows if row[SEQ] <= after.since]
            walk.enter(layout)
            walk.rows(layout, rows)
        if at_end:
            walk.finish()
        return walk.segments, walk.turns

    def skip(self, catalog: Catalog, end: int, *, rewrites: bool) -> list[Turn]:
        """What the relation is at the end, without what lies before; it ``rewrites`` when that was
        something."""
        walk = _Walk(self._source, self._relation, self.shape, catalog, end, end)
        walk.finish(rewrites)
        return walk.turns


class _Walk:
    """One pass over what was read, with the shape as it goes along."""

    def __init__(
        self,
        source: str,
        relation: str,
        shape: Shape | None,
        catalog: Catalog,
        start: int,
        end: int,
    ) -> None:
        self.source, self.relation, self.shape, self.catalog = source, relation, shape, catalog
        self.start, self.end = start, end
        self.capture = captured(catalog, relation, shape)
        self.renamed_to: str | None = None
        if self.capture is not None and self.capture.table.name != relation:
            # Until the end of what was read the relation counts as what it was called at the start.
            self.renamed_to = self.capture.table.name
            self.capture = replace(self.capture, table=replace(self.capture.table, name=relation))
        self.segments: list[Segment] = []
        self.turns: list[Turn] = []

    def enter(self, layout: Layout) -> None:
        """Come to a layout; a new one of a table that was there goes on where the one before ended."""
        shape = self.shape
        if shape is not None and layout.number == shape.layout:
            return
        schema, _ = self._schema(layout, 0, 0)
        place = max(layout.since, self.start)
        self._turn(place, self.fresh(layout), schema, rewrites=not is_known(shape))

    def fresh(self, layout: Layout) -> Shape:
        """The shape when the layout was made."""
        schema, _ = self._schema(layout, 0, 0)
        page, row = layout.table.root_page, layout.table.row
        return Shape(layout.number, 0, 0, page, schema.fingerprint, row=row)

    def rows(self, layout: Layout, logged: Sequence[Sequence[Any]]) -> None:
        if self.shape is None:
            return
        for (vanished, dropped), group in self._groups(layout, logged):
            if (vanished, dropped) != (self.shape.vanished, self.shape.dropped):
                schema, _ = self._schema(layout, vanished, dropped)
                shape = replace(
                    self.shape, vanished=vanished, dropped=dropped, fingerprint=schema.fingerprint
                )
                self._turn(group[0][SEQ] - 1, shape, schema, rewrites=False)
            self._segment(layout, vanished, dropped, group)

    def finish(self, rewrites: bool = False) -> None:
        """Compare with the catalog: what no row has shown."""
        self._compare(rewrites)
        if self.renamed_to is not None or self.capture is None:
            self._leave()

    def _leave(self) -> None:
        """Nothing has the relation's name any more."""
        if self.shape is not None and self.shape.layout != ABSENT:
            rewrites = self.renamed_to is None
            self._turn(self.end, Shape(ABSENT, 0, 0, 0, "", gap=True), None, rewrites)

    def _compare(self, rewrites: bool) -> None:
        shape, capture = self.shape, self.capture
        if shape is None or capture is None:
            return
        now = shape_of(capture)
        if now is None or now.gap:
            return  # a table that was not recorded took the name of one that is gone
        self._turn(self.end, now, capture.schema, rewrites or not is_known(shape))

    def _groups(
        self, layout: Layout, logged: Sequence[Sequence[Any]]
    ) -> Iterator[tuple[tuple[int, int], Sequence[Sequence[Any]]]]:
        if not logged:
            return
        unwatched = len(layout.table.columns) > WATCHED_COLUMNS_MAX
        if not unwatched and {row[VANISHED] for row in logged} == {0}:
            yield (0, 0), logged
            return

        def key(row: Sequence[Any]) -> tuple[int, int]:
            marks = (i for i, value in enumerate(row[VALUES:]) if value == layout.mark)
            return row[VANISHED], sum(1 << place for place in marks)

        for shape, group in groupby(logged, key):
            yield shape, list(group)

    def _segment(
        self, layout: Layout, vanished: int, dropped: int, group: Sequence[Sequence[Any]]
    ) -> None:
        schema, places = self._schema(layout, vanished, dropped)
        columns = list(zip(*group, strict=True))
        try:
            decoded = decode_columns(
                [columns[VALUES + place] for place in places],
                schema.schema.fields,
                required=frozenset(schema.key),
                identities=columns[ID],
                source=self.source,
                relation=self.relation,
            )
        except PoisonRow as error:
            error.index = group[error.index][SEQ]
            raise
        rows = rows_from(decoded, len(group))
        self.segments.append(Segment(self.relation, columns[SEQ], columns[SIGN], rows))

    def _schema(
        self, layout: Layout, vanished: int, dropped: int
    ) -> tuple[RelationSchema, tuple[int, ...]]:
        """The relation's schema in that state of the layout, and where its columns are logged."""
        capture = self.capture
        current: tuple[str | None, ...] = ()
        if capture is not None and capture.layout == layout:
            state = (capture.vanished, dropped_now(capture))
            if not capture.gap and state == (vanished, dropped):
                return capture.schema, capture.places
            current = capture.names
        names = []
        for place, column in enumerate(layout.table.columns):
            now = current[place] if current else None
            names.append(now if vanished >> place & 1 and now is not None else column.name)
        kept = [
            (place, replace(column, name=names[place]))
            for place, column in enumerate(layout.table.columns)
            if not dropped >> place & 1
        ]
        originals = layout.table.names()
        key = [names[originals.index(name)] for name in layout.table.primary_key]
        schema = relation_schema(self.relation, [column for _, column in kept], key, {})
        where = {column.name: place for place, column in kept}
        return schema, tuple(where[name] for name in schema.schema.names)

    def fingerprint_of(self, shape: Shape) -> str:
        """The shape's schema under this relation's name."""
        layout = next(x for x in self.catalog.layouts if x.number == shape.layout)
        schema, _ = self._schema(layout, shape.vanished, shape.dropped)
        return schema.fingerprint

    def _known(self, shape: Shape) -> RelationSchema | None:
        """The schema behind a shape, as far as its layout still tells."""
        if self.capture is not None and self.capture.schema.fingerprint == shape.fingerprint:
            return self.capture.schema
        for layout in self.catalog.layouts:
            if layout.number == shape.layout:
                schema, _ = self._schema(layout, shape.vanished, shape.dropped)
                return replace(schema, fingerprint=shape.fingerprint)
        return None

    def _turn(self, place: int, shape: Shape, after: RelationSchema | None, rewrites: bool) -> None:
        before = self._known(self.shape) if self.shape is not None else None
        renamed_to = self.renamed_to if after is None else None
        if rewrites or before is None or after is None or before.fingerprint != after.fingerprint:
            renamed = self._renamed(shape, before, after)
            self.turns.append(
                Turn(self.relation, place, before, after, rewrites, renamed, renamed_to, shape)
            )
        self.shape = shape

    def _renamed(
        self, shape: Shape, before: RelationSchema | None, after: RelationSchema | None
    ) -> Mapping[str, str]:
        """Columns that kept their place in the same layout under another name."""
        if before is None or after is None or self.shape is None:
            return {}
        layouts = {layout.number: layout for layout in self.catalog.layouts}
        known, reached = layouts.get(self.shape.layout), layouts.get(shape.layout)
        if known is None or reached is None:
            return {}
        old, places = self._schema(known, self.shape.vanished, self.shape.dropped)
        if reached == known:
            new, new_places = self._schema(known, shape.vanished, shape.dropped)
            now: dict[int, str | None] = dict(zip(new_places, new.schema.names, strict=True))
        elif reached.before == known.number:
            now = dict(enumerate(reached.names_before))
        else:
            return {}
        found = {}
        for name, place in zip(old.schema.names, places, strict=True):
            called = now.get(place)
            if called is not None and called != name and called in after.schema:
                found[name] = called
        return found
