"""The schemas of a feed's relations as the feed moves through time.

A feed may start where a relation had another schema than it has now. So a relation is taken for what
the stream says it is: RELATION messages come before its first row and after every change, and the
event trigger's messages carry the whole description before and after. Without the trigger a change
shows only when the next row comes, and what it did to the old rows is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.postgres.catalogue import Column, Described, described
from viewkeeper.sources.postgres.codec import ColumnType, codec_for
from viewkeeper.sources.postgres.columns import ColumnDecoder
from viewkeeper.sources.postgres.pgoutput import StreamColumn, StreamRelation, TupleDecoder

# Fields of a SchemaChange, all but source and position.
ChangeFields = dict[str, Any]
# Documents of the given type oids, as in a description's columns; asked only for unknown types.
LookUpTypes = Callable[[Sequence[int]], Mapping[int, ColumnType]]


@dataclass
class Tracked:
    """A relation in the feed: how it is described at this place, and how its rows are read."""

    name: str
    described: Described
    decoder: TupleDecoder
    columns: ColumnDecoder
    # Whether the stream has confirmed the description; before that it is what the catalogue says now.
    met: bool = False


class TrackedRelations:
    """The relations that a feed was asked for, by oid."""

    def __init__(
        self,
        source: str,
        relations: Sequence[Described],
        look_up_types: LookUpTypes,
        describe_now: Callable[[int, str], Described | None],
    ) -> None:
        self._source = source
        self._look_up_types, self._describe_now = look_up_types, describe_now
        self.by_oid = {each.oid: _tracked(each) for each in relations}

    def meet(self, stream: StreamRelation) -> ChangeFields | None:
        """A RELATION message. Gives a schema change if nobody announced that it differs."""
        tracked = self.by_oid.get(stream.oid)
        if tracked is None:
            return None
        same = _columns_match(tracked.described, stream)
        if same and (stream.namespace, stream.name) == _names(tracked.described):
            tracked.met = True
            return None
        seen = self._from_stream(tracked, stream)
        was_met, before = tracked.met, tracked.described
        self.by_oid[stream.oid] = replace(_tracked(seen), met=True)
        if not was_met:
            return None  # the feed starts in the past, before changes that are still to come
        return _change(tracked.name, before, seen, "(no event trigger recorded it)", rewrites=True)

    def noted(self, note: Mapping[str, Any]) -> Iterator[ChangeFields]:
        """A message of our event trigger: what a command did to one relation."""
        if "unclear" in note:
            yield from self._all_unclear(note)
            return
        oid = note["before"]["oid"]
        tracked = self.by_oid.get(oid)
        if tracked is None:
            return
        before = described(tracked.name, note["before"])
        statement = note["statement"] or note["tag"]
        if note["after"] is None:
            del self.by_oid[oid]
            yield _change(tracked.name, before, None, statement, rewrites=False)
            return
        after = described(_renamed(tracked.name, note), note["after"])
        if note["after"]["partial"]:
            # Rows would come with NULLs for their old values, and nothing would show it.
            raise identity_lost(self._source, tracked.name)
        self.by_oid[oid] = replace(_tracked(after), met=True)
        yield _change(
            tracked.name, before, after, statement, rewrites=_rewrites(before, after, note)
        )

    def _all_unclear(self, note: Mapping[str, Any]) -> Iterator[ChangeFields]:
        """The trigger failed: any relation may have changed, so each is taken as it is now."""
        for oid, tracked in sorted(self.by_oid.items()):
            now = self._describe_now(oid, tracked.name)
            if now is None:
                del self.by_oid[oid]
            else:
                self.by_oid[oid] = _tracked(now)
            statement = f"{note['tag']} (its trigger could not tell: {note['unclear']})"
            yield _change(tracked.name, tracked.described, now, statement, rewrites=True)

    def _from_stream(self, tracked: Tracked, stream: StreamRelation) -> Described:
        """A description from a RELATION message: names and types are there, the rest is not."""
        known = {column.type_oid: column.type for column in tracked.described.columns}
        wanted = sorted({c.type_oid for c in stream.columns} - set(known))
        types = known | (dict(self._look_up_types(wanted)) if wanted else {})
        missing = [c.name for c in stream.columns if c.type_oid not in types]
        if missing:
            raise SourceError(
                "schema-unknown",
                f"columns of {tracked.name} in the feed of {self._source} have unknown types",
                source=self._source,
                retryable=False,
                detail=f"the types of {', '.join(missing)} were dropped since",
                hint=rebuild_command(self._source),
            )
        document = dict(tracked.described.document)
        document |= {
            "schema": stream.namespace,
            "name": stream.name,
            "columns": [
                _column_document(number, c, types[c.type_oid], tracked.described)
                for number, c in enumerate(stream.columns, start=1)
            ],
        }
        document["key"] = [k for k in document["key"] if k in {c.name for c in stream.columns}]
        return described(tracked.name, document)


def _tracked(each: Described) -> Tracked:
    codecs = [column.codec for column in each.streamed]
    parsers = [None if codec is None else codec.parse for codec in codecs]
    return Tracked(
        each.name, each, TupleDecoder(parsers), ColumnDecoder(codecs, each.relation.schema)
    )


def _columns_match(each: Described, stream: StreamRelation) -> bool:
    ours = [(c.name, c.type_oid, c.modifier) for c in each.streamed]
    return ours == [(c.name, c.type_oid, c.modifier) for c in stream.columns]


def _names(each: Described) -> tuple[str, str]:
    return each.schema_name, each.table_name


def _column_document(
    number: int, column: StreamColumn, type: ColumnType, before: Described
) -> dict[str, Any]:
    same: Column | None = next((c for c in before.columns if c.name == column.name), None)
    is_domain = type.modifier >= 0 and column.modifier < 0
    return {
        "num": same.number if same is not None else number,
        "name": column.name,
        "generated": "",
        "oid": column.type_oid,
        "modifier": column.modifier,
        "type": type.name,
        "category": type.category,
        "base_modifier": type.modifier if is_domain else column.modifier,
        "element": type.element,
        "element_category": type.element_category,
    }


def _renamed(name: str, note: Mapping[str, Any]) -> str:
    """The relation's name for views after the command."""
    before, after = note["before"], note["after"]
    if (before["schema"], before["name"]) == (after["schema"], after["name"]):
        return name
    return after["name"] if after["schema"] == "public" else f"{after['schema']}.{after['name']}"


def _rewrites(before: Described, after: Described, note: Mapping[str, Any]) -> bool:
    """Whether old rows read differently now, or came and went, without a row in the feed."""
    if note["rewritten"]:
        return True
    if before.partitions != after.partitions and not note["tag"].startswith("CREATE TABLE"):
        return True  # attached or detached with its rows; a partition just created is empty
    now = {column.number: column for column in after.columns}
    for column in before.readable:
        then = now.get(column.number)
        if then is not None and codec_for(column.type) != codec_for(then.type):
            return True
    return False


def _change(
    name: str, before: Described, after: Described | None, statement: str, *, rewrites: bool
) -> ChangeFields:
    fields: ChangeFields = {
        "relation": name,
        "before": before.relation,
        "after": None if after is None else after.relation,
        "statement": statement,
        "rewrites": rewrites,
    }
    if after is not None:
        numbers = {column.number: column.name for column in after.columns}
        fields["renamed_columns"] = {
            c.name: numbers[c.number]
            for c in before.columns
            if c.number in numbers and numbers[c.number] != c.name
        }
        if after.name != name:
            fields |= {"after": None, "renamed_to": after.name}
    return fields


def identity_lost(source: str, relation: str) -> SourceError:
    return SourceError(
        "identity-lost",
        f"the feed of {source} lacks the old values of rows of {relation}",
        source=source,
        retryable=False,
        detail="REPLICA IDENTITY FULL is not set on the table or on one of its partitions",
        hint=rebuild_command(source, allow_setup=True),
    )
