"""What PostgreSQL's catalog says of a relation: its columns, key and partitions, as one document.

The same SQL runs in three places: when schemas are asked for, inside every cut, and in the event
trigger that puts schema changes into the feed. So the three can't tell different stories.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.types import Field, Schema
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import RelationSchema
from viewkeeper.sources.postgres.codec import Codec, ColumnType, codec_for
from viewkeeper.sources.postgres.quoting import quoted

# {relation} is an expression for the relation's oid. Children: every one below it, at any depth.
# Partial: those whose old rows are not in the log as a whole.
DESCRIPTION = """
SELECT jsonb_build_object(
  'oid', c.oid::int8, 'schema', n.nspname, 'name', c.relname, 'kind', c.relkind,
  'persistence', c.relpersistence,
  'columns', (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
      'num', a.attnum, 'name', a.attname, 'generated', a.attgenerated,
      'oid', a.atttypid::int8, 'modifier', a.atttypmod,
      'type', tn.nspname || '.' || t.typname, 'category', t.typtype, 'base_modifier', b.modifier,
      'element', CASE WHEN t.typcategory = 'A' THEN en.nspname || '.' || e.typname ELSE '' END,
      'element_category', CASE WHEN t.typcategory = 'A' THEN e.typtype ELSE '' END
    ) ORDER BY a.attnum), '[]')
    FROM pg_catalog.pg_attribute a
    CROSS JOIN LATERAL (
      WITH RECURSIVE base(oid, modifier) AS (
        SELECT a.atttypid, a.atttypmod
        UNION ALL
        SELECT d.typbasetype, d.typtypmod FROM base JOIN pg_catalog.pg_type d ON d.oid = base.oid
        WHERE d.typtype = 'd')
      SELECT base.oid, base.modifier FROM base JOIN pg_catalog.pg_type d ON d.oid = base.oid
      WHERE d.typtype <> 'd') b
    JOIN pg_catalog.pg_type t ON t.oid = b.oid
    JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
    LEFT JOIN pg_catalog.pg_namespace en ON en.oid = e.typnamespace
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'key', (
    SELECT coalesce(jsonb_agg(a.attname ORDER BY k.place), '[]')
    FROM pg_catalog.pg_index i
    CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(num, place)
    JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
    WHERE i.indrelid = c.oid AND i.indisprimary AND k.place <= i.indnkeyatts),
  'children', (
    WITH RECURSIVE below(oid) AS (
      SELECT h.inhrelid FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid
      UNION ALL
      SELECT h.inhrelid FROM below JOIN pg_catalog.pg_inherits h ON h.inhparent = below.oid)
    SELECT coalesce(jsonb_agg(below.oid::int8 ORDER BY below.oid), '[]') FROM below),
  'partial', (
    SELECT coalesce(jsonb_agg(p.oid::int8 ORDER BY p.oid), '[]') FROM pg_catalog.pg_class p
    WHERE p.relreplident <> 'f' AND p.relkind IN ('r', 'p') AND (p.oid = c.oid OR p.oid IN (
      SELECT t.relid FROM pg_catalog.pg_partition_tree(c.oid) t)))
)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = {relation}
"""

# Relations by the names that views use: ``table`` for the schema public, else ``schema.table``.
NAMES = """
SELECT c.oid::int8,
       CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END,
       n.nspname || '.' || c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
  AND NOT starts_with(n.nspname, 'viewkeeper_')
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
"""


@dataclass(frozen=True)
class Column:
    name: str
    number: int
    type_oid: int
    modifier: int
    generated: bool
    type: ColumnType
    codec: Codec | None


@dataclass(frozen=True)
class Described:
    """A relation's description, read; ``name`` is what the views call it."""

    name: str
    oid: int
    schema_name: str
    table_name: str
    columns: tuple[Column, ...]
    relation: RelationSchema
    partitions: tuple[int, ...]
    document: Mapping[str, Any]

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema_name)}.{quoted(self.table_name)}"

    @property
    def readable(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.codec is not None)

    @property
    def streamed(self) -> tuple[Column, ...]:
        """The columns that the feed carries: generated ones are left out."""
        return tuple(column for column in self.columns if not column.generated)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.readable if column.name == name), None)


def described(name: str, document: Mapping[str, Any]) -> Described:
    """From the document that `DESCRIPTION` gives."""
    columns, refused = [], {}
    for entry in document["columns"]:
        column, reason = _column(entry)
        columns.append(column)
        if reason:
            refused[column.name] = reason
    readable = [column for column in columns if column.codec is not None]
    relation = RelationSchema(
        relation=name,
        schema=Schema(tuple(Field(c.name, c.codec.type) for c in readable if c.codec is not None)),
        key=tuple(document["key"]) if not set(document["key"]) & set(refused) else (),
        fingerprint=_fingerprint(document),
        refused=refused,
    )
    return Described(
        name=name,
        oid=document["oid"],
        schema_name=document["schema"],
        table_name=document["name"],
        columns=tuple(columns),
        relation=relation,
        partitions=tuple(document["children"]),
        document=document,
    )


def _column(entry: Mapping[str, Any]) -> tuple[Column, str]:
    kind = ColumnType(
        entry["type"],
        entry["category"],
        entry["base_modifier"],
        entry["element"],
        entry["element_category"],
    )
    codec = codec_for(kind)
    reason = codec if isinstance(codec, str) else ""
    if entry["generated"]:
        reason = "a generated column does not appear in the change feed"
    column = Column(
        name=entry["name"],
        number=entry["num"],
        type_oid=entry["oid"],
        modifier=entry["modifier"],
        generated=bool(entry["generated"]),
        type=kind,
        codec=None if reason or isinstance(codec, str) else codec,
    )
    return column, reason


def _fingerprint(document: Mapping[str, Any]) -> str:
    """Of everything that decides how rows are read. The partitions are contents, not schema."""
    kept = {k: value for k, value in document.items() if k not in ("children", "partial")}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def alike(one: RelationSchema, other: RelationSchema) -> bool:
    """Whether rows of one are rows of the other, told apart by the same columns."""
    return one.schema == other.schema and set(one.key) == set(other.key)


def differ(one: Described, other: Described) -> bool:
    """Whether two descriptions of a table are read differently, or have not the same partitions."""
    if not alike(one.relation, other.relation) or one.partitions != other.partitions:
        return True
    codecs = [[codec_for(c.type) for c in each.readable] for each in (one, other)]
    return codecs[0] != codecs[1]


def names_to_oids(
    rows: Sequence[tuple[Any, ...]], relations: Sequence[str] | None, source: str
) -> dict[str, int]:
    """The relations' oids, from the rows of `NAMES`; raises SourceError for one that is not there."""
    short = {row[1]: int(row[0]) for row in rows}
    qualified = {row[2]: int(row[0]) for row in rows}
    if relations is None:
        return dict(sorted(short.items()))
    found = {}
    for name in relations:
        oid = short.get(name, qualified.get(name))
        if oid is None:
            raise unknown_relation(name, source)
        found[name] = oid
    return found


def unknown_relation(name: str, source: str) -> SourceError:
    return SourceError(
        "unknown-relation",
        f"source {source} has no relation {name} that we may read",
        source=source,
        retryable=False,
        detail="it does not exist, is not a table, or the role has no SELECT on it",
        hint="a table outside the schema public is named schema.table",
    )
