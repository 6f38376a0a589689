"""Random scripts of data and schema changes, each possible where its source stands then."""

from __future__ import annotations

import decimal
import random
from collections.abc import Mapping

from viewkeeper.algebra import Bag, Row
from viewkeeper.algebra.types import INTEGER, STRING, Field, Kind, Type, Value, decimal_type
from viewkeeper.evolution.changes import (
    AddAttribute,
    AddRelation,
    ChangeType,
    DropAttribute,
    DropRelation,
    RenameAttribute,
    RenameRelation,
    Rewrite,
    SchemaChange,
    SchemaChanged,
    Update,
    catalog_after,
)
from viewkeeper.simulator.evolution.sight import Sight
from viewkeeper.simulator.evolution.source import contents_after
from viewkeeper.simulator.generator import DRAWS_MAX, UNSEEN_SHARE
from viewkeeper.timeline import Transaction
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition

VALUES = (0, 1, 2)
# Few, so that names are used again.
COLUMN_NAMES = ("id", "a", "b", "c", "x", "y", "k", "z")
RELATION_NAMES = ("r1", "r2", "r3", *(f"q{number}" for number in range(20)))
# A source begins with so many changes of data.
DATA_FIRST = 2
WIDE = decimal_type(20, 0)
# What a column may become: wider, narrower, or something else altogether.
RETYPED = {
    Kind.INTEGER: (WIDE, STRING),
    Kind.DECIMAL: (INTEGER,),
    Kind.STRING: (INTEGER,),
}
# How often each kind of schema change is tried, relative to the others.
KINDS = {
    "rename-attribute": 6,
    "rename": 4,
    "drop-attribute": 4,
    "drop": 4,
    "add-attribute": 2,
    "add": 1,
    "type": 2,
    "rewrite": 2,
}


class ScriptWriter:
    """Writes what each source will do, keeping track of what it holds meanwhile."""

    def __init__(
        self,
        rng: random.Random,
        catalog: Catalog,
        initial: Mapping[RelationName, Bag],
        mirrors: Mapping[RelationName, RelationName],
        schema_share: float,
        view: ViewDefinition,
    ) -> None:
        self.rng = rng
        self.sight = Sight(view)
        # How many data changes the view shows, while it is what it was but for names; and whether
        # they leave it another one than it was, so that some show in whatever order they come.
        self.seen = 0
        self.has_moved = False
        self._at_start = self.sight.seen(initial)
        self.catalog = catalog
        self.contents = dict(initial)
        self.mirrors = dict(mirrors)
        self.schema_share = schema_share
        self.ids = 1000

    def scripts(self, sources: list[str], updates: int) -> dict[str, tuple[Update, ...]]:
        scripts: dict[str, list[Update]] = {source: [] for source in sources}
        for _ in range(updates):
            source = self.rng.choice(sources)
            update = self._update(source, len(scripts[source]) + 1)
            if update is not None:
                scripts[source].append(update)
                self.contents = contents_after(self.contents, update)
                if not self.sight.is_lost:
                    self.has_moved = self.sight.seen(self.contents) != self._at_start
        return {source: tuple(script) for source, script in scripts.items()}

    def _update(self, source: str, number: int) -> Update | None:
        present = self.catalog.of_source(source)
        # Data first: some of it is maintained, and not only read when a view is adapted.
        if present and (number <= DATA_FIRST or self.rng.random() >= self.schema_share):
            return self._data_change(source, number, present)
        change = self._schema_change(source, present)
        if change is None:
            return None
        if isinstance(
            change, AddAttribute | DropAttribute | ChangeType | Rewrite
        ) and self._is_mirrored(change):
            return None
        self.catalog = catalog_after(self.catalog, change)
        self._follow(change)
        self.sight.follow(change)
        return SchemaChanged(source, number, change)

    # -- schema changes ----------------------------------------------------------------------------

    def _schema_change(
        self, source: str, present: tuple[CatalogRelation, ...]
    ) -> SchemaChange | None:
        if not present:
            return None
        relation = self.rng.choice(present)
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        columns = relation.schema.names
        column = self.rng.choice(columns)
        match kind:
            case "rename-attribute":
                free = [name for name in COLUMN_NAMES if name not in columns]
                return RenameAttribute(relation.name, column, self.rng.choice(free))
            case "rename":
                return RenameRelation(relation.name, self._free_name(source))
            case "drop-attribute" if len(columns) > 1:
                return DropAttribute(relation.name, column)
            case "drop":
                return DropRelation(relation.name)
            case "add-attribute" if len(columns) < len(COLUMN_NAMES):
                free = [name for name in COLUMN_NAMES if name not in columns]
                return AddAttribute(relation.name, Field(self.rng.choice(free), INTEGER))
            case "add":
                name = RelationName(source, self._free_name(source))
                return AddRelation(name, relation.schema, relation.key)
            case "rewrite":
                return Rewrite(relation.name)
            case "type":
                return self._retyped(relation, column)
            case _:
                return None

    def _free_name(self, source: str) -> str:
        taken = {r.name.relation for r in self.catalog.of_source(source)}
        return self.rng.choice([name for name in RELATION_NAMES if name not in taken][:3])

    def _retyped(self, relation: CatalogRelation, column: str) -> SchemaChange | None:
        before = relation.schema.type_of(column)
        others = RETYPED[before.kind]
        return ChangeType(relation.name, column, before, self.rng.choice(others))

    def _is_mirrored(self, change: SchemaChange) -> bool:
        return change.relation in (*self.mirrors, *self.mirrors.values())

    def _follow(self, change: SchemaChange) -> None:
        """Two relations that change together do so under other names too, as long as both are there."""
        for name, mirror in list(self.mirrors.items()):
            match change:
                case DropRelation(relation) if relation in (name, mirror):
                    del self.mirrors[name]
                case RenameRelation(relation) if relation in (name, mirror):
                    del self.mirrors[name]
                    old, new = relation, change.renamed
                    self.mirrors[new if name == old else name] = new if mirror == old else mirror

    # -- data changes ------------------------------------------------------------------------------

    def _data_change(
        self, source: str, number: int, present: tuple[CatalogRelation, ...]
    ) -> Transaction | None:
        """Drawn again, a few times, while the view would not show it; but some stay unseen."""
        update: Transaction | None = None
        for _ in range(1 if self.rng.random() < UNSEEN_SHARE else DRAWS_MAX):
            changes = self._changes(self.rng.choice(present))
            update = Transaction(source, number, changes) if changes else None
            if update is not None and self.sight.shows(self.contents, update):
                self.seen += 1
                break
            if self.sight.is_lost:
                break
        return update

    def _changes(self, relation: CatalogRelation) -> tuple[tuple[RelationName, Bag], ...]:
        if relation.name in self.mirrors.values():
            return ()
        change = self._change(relation)
        changes = [(relation.name, change)]
        mirror = self.mirrors.get(relation.name)
        if mirror is not None:
            schema = self.contents[mirror].schema
            rows = ((row[: len(schema)], count) for row, count in change)
            changes.append((mirror, Bag(schema, rows)))
        elif self.rng.random() < 0.2:
            others = [r for r in self.catalog.of_source(relation.name.source) if r != relation]
            others = [r for r in others if r.name not in {*self.mirrors, *self.mirrors.values()}]
            if others:
                other = self.rng.choice(others)
                changes.append((other.name, self._change(other)))
        return tuple(changes)

    def _change(self, relation: CatalogRelation) -> Bag:
        """A row in, out, or modified; keys stay unique."""
        rows = self.contents[relation.name]
        present = [row for row, _ in rows.sorted()]
        kind = self.rng.choice(("insert", "insert", "delete", "modify")) if present else "insert"
        signed: list[tuple[Row, int]] = []
        old = self.rng.choice(present) if present else None
        if kind != "insert" and old is not None:
            signed.append((old, -1))
        if kind != "delete":
            signed.append((self._row(relation, old if kind == "modify" else None), 1))
        return Bag.signed(rows.schema, signed)

    def _row(self, relation: CatalogRelation, like: Row | None) -> Row:
        self.ids += 1
        values: list[Value] = []
        for index, field in enumerate(relation.schema):
            if field.name in relation.key:
                values.append(_typed(self.ids, field.type) if like is None else like[index])
            else:
                value = self.rng.choice((*VALUES, *VALUES, None))
                values.append(None if value is None else _typed(value, field.type))
        return tuple(values)


def _typed(value: int, type: Type) -> Value:
    match type.kind:
        case Kind.INTEGER:
            return value
        case Kind.STRING:
            return str(value)
        case _:
            return decimal.Decimal(value)
