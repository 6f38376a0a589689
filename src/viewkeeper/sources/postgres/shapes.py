"""The schemas of a feed's relations as the feed moves through time.

A feed may start where a relation had another schema than it has now. So a relation is taken for what
the stream says it is: RELATION messages come before its first row and after every change, and the
event trigger's notes carry the whole description before and after. Without the trigger a change
shows only when the next row comes, and what it did to the old rows is unknown.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from viewkeeper.errors import SourceError, rebuild_command
from viewkeeper.sources.interface import RelationSchema
from viewkeeper.sources.postgres.catalog import Column, Described, alike, described, differ
from viewkeeper.sources.postgres.codec import ColumnType, codec_for
from viewkeeper.sources.postgres.columns import ColumnDecoder
from viewkeeper.sources.postgres.notes import told
from viewkeeper.sources.postgres.pgoutput import StreamColumn, StreamRelation, TupleDecoder
from viewkeeper.sources.postgres.watching import Seen

# What a change is said to be that no trigger has told of.
UNTOLD = "(no event trigger recorded it)"
# Fields of a SchemaChange, all but source and position.
ChangeFields = dict[str, Any]
# Documents of the given type oids, as in a description's columns; asked only for unknown types.
LookUpTypes = Callable[[Sequence[int]], Mapping[int, ColumnType]]


class Context(Protocol):
    """What is asked of the server beside the stream: it may be ahead of the stream, never behind."""

    def holder(self, name: str, xid: int) -> int | None:
        """The table that has a relation's name now that a transaction is visible."""

    def publishes(self, oid: int) -> bool:
        """Whether all changes of a table are in the publication."""

    def written_down(self, since: int, until: int, xid: int) -> Sequence[int]:
        """The tables of which an older set-up of ours wrote down a change between two places."""


class Same(enum.Enum):
    """A look found a table as the feed has told it."""

    SAME = enum.auto()


SAME = Same.SAME


@dataclass
class Tracked:
    """A relation in the feed: how it is described at this place, and how its rows are read."""

    name: str
    described: Described
    decoder: TupleDecoder
    columns: ColumnDecoder
    # Whether the stream has confirmed the description; before that it is what the catalog says now.
    met: bool = False
    # What the views take it for where the feed starts, until the feed has shown what it is.
    believed: RelationSchema | None = None

    @property
    def is_doubted(self) -> bool:
        """Whether the views take it for something else, and nothing has told them yet."""
        believed = None if self.met else self.believed
        return believed is not None and not alike(believed, self.described.relation)


class TrackedRelations:
    """The relations that a feed was asked for, by oid."""

    def __init__(
        self,
        source: str,
        relations: Sequence[Described],
        look_up_types: LookUpTypes,
        describe_now: Callable[[int, str], Described | None],
        believed: Mapping[str, RelationSchema] | None = None,
        context: Context | None = None,
    ) -> None:
        self._source = source
        self._look_up_types, self._describe_now = look_up_types, describe_now
        self._context = context
        self.by_oid = {
            each.oid: replace(_tracked(each), believed=(believed or {}).get(each.name))
            for each in relations
        }

    # -- what the stream says ---------------------------------------------------------------------

    def meet(self, stream: StreamRelation, xid: int = 0) -> Iterator[ChangeFields]:
        """A RELATION message, in a transaction. Gives schema changes that were not announced."""
        tracked = self.by_oid.get(stream.oid)
        if tracked is None:
            return
        has_its_name = (stream.namespace, stream.name) == _names(tracked.described)
        is_as_known = has_its_name and _columns_match(tracked.described, stream)
        if tracked.met and is_as_known:
            return
        seen = tracked.described if is_as_known else self._from_stream(tracked, stream)
        if not tracked.met and tracked.believed is None:
            # It is not known what it was: the feed may start before changes that are still to come.
            self.by_oid[stream.oid] = replace(_tracked(seen), met=True)
        elif not has_its_name:
            holder = self._holder(tracked.name, xid)
            yield from self._left_its_name(tracked, seen, UNTOLD, holder)
        else:
            self.by_oid[stream.oid] = replace(_tracked(seen), met=True)
            yield from self._untold(tracked, seen, certain=not is_as_known)

    def hinted(self, since: int, until: int, xid: int) -> Iterator[ChangeFields]:
        """A message of an older set-up, or of anybody: what it says counts for nothing.

        But where its transaction may have changed a relation, as only our owner can have written down,
        that is taken as it is now.
        """
        around = self._context
        for oid in () if around is None else around.written_down(since, until, xid):
            if oid in self.by_oid:
                name = self.by_oid[oid].name
                now = self._describe_now(oid, name)
                yield from self._found(oid, now, self._holder(name, xid))

    def noted(self, note: Mapping[str, Any], xid: int = 0) -> Iterator[ChangeFields]:
        """Of our event trigger: what a command did to one relation."""
        if "unclear" in note:
            yield from self._all_unclear(note)
            return
        oid = note["before"]["oid"]
        tracked = self.by_oid.get(oid)
        if tracked is None:
            self._require_unnamed(note)
            return
        before = described(tracked.name, note["before"])
        now = None if note["after"] is None else described(tracked.name, note["after"])
        statement = told(note["tag"], before, now)
        if now is None or (
            _names(now) != _names(before) and _names(now) != _names(tracked.described)
        ):
            holder = self._holder(tracked.name, xid)
            tracked = replace(tracked, described=before, met=True)
            yield from self._left_its_name(tracked, now, statement, holder)
            return
        self._require_identity(now)
        self.by_oid[oid] = replace(_tracked(now), met=True)
        # Two tables that exchange their names are both noted with the first command.
        if _names(now) == _names(before) or differ(before, now) or note["rewritten"]:
            rewrites = _rewrites(before, now, note)
            yield _change(tracked.name, before, now, statement, rewrites=rewrites)

    # -- what a look says -------------------------------------------------------------------------

    def compared(self, oid: int, *, rewritten: bool) -> Described | Same | None:
        """A table as it is now, where that is not what the feed has told; None when it is gone."""
        tracked = self.by_oid[oid]
        now = self._describe_now(oid, tracked.name)
        if now is None or _names(now) != _names(tracked.described):
            return now
        self._require_identity(now)
        is_same = not rewritten and not differ(tracked.described, now)
        if tracked.is_doubted or not is_same:
            return now
        # What only the stream had described has its numbers and modifiers now, too.
        self.by_oid[oid] = replace(_tracked(now), met=tracked.met, believed=tracked.believed)
        return SAME

    def found(self, oid: int, now: Described | None, seen: Seen) -> Iterator[ChangeFields]:
        """What a look has found, and the feed has passed: nothing in it has told of the change."""
        yield from self._found(oid, now, seen.holders.get(self.by_oid[oid].name))

    def _found(self, oid: int, now: Described | None, holder: int | None) -> Iterator[ChangeFields]:
        tracked = self.by_oid[oid]
        if now is None or _names(now) != _names(tracked.described):
            yield from self._left_its_name(tracked, now, UNTOLD, holder)
            return
        self.by_oid[oid] = replace(_tracked(now), met=True)
        yield from self._untold(tracked, now, certain=True)

    # -- what follows -----------------------------------------------------------------------------

    def _untold(self, before: Tracked, now: Described, *, certain: bool) -> Iterator[ChangeFields]:
        """A change that no trigger has told of: what it did to the rows that were there is unknown.

        Unless it is certain that there was one, it shows in how the rows are read.
        """
        believed = None if before.met else before.believed
        if believed is None or alike(believed, before.described.relation):
            if certain or differ(before.described, now):
                yield _change(before.name, before.described, now, UNTOLD, rewrites=True)
        elif not alike(believed, now.relation):
            renamed = renamed_by_place(believed.schema.names, now)
            if renamed is None:
                raise _untellable(self._source, before.name, believed.schema.names, now)
            fields = _change(before.name, now, now, UNTOLD, rewrites=True)
            yield fields | {"before": believed, "renamed_columns": renamed}

    def _left_its_name(
        self, tracked: Tracked, now: Described | None, statement: str, holder: int | None
    ) -> Iterator[ChangeFields]:
        """A table was renamed or dropped. Views read a table by its name: where another one has it by
        now, they read that one; else they follow a table that was renamed."""
        oid, name = tracked.described.oid, tracked.name
        del self.by_oid[oid]
        if holder is not None and holder != oid:
            yield from self._replaced(tracked, holder, statement)
        elif now is None:
            yield _change(name, tracked.described, None, statement, rewrites=False)
        else:
            after = described(_view_name(now), now.document)
            self._require_identity(after)
            is_untold = statement == UNTOLD
            if is_untold and (tracked.is_doubted or differ(tracked.described, now)):
                names = (tracked.believed or tracked.described.relation).schema.names
                raise _untellable(self._source, name, names, now)
            self.by_oid[oid] = replace(_tracked(after), met=True)
            yield _change(name, tracked.described, after, statement, rewrites=is_untold)

    def _replaced(self, tracked: Tracked, holder: int, statement: str) -> Iterator[ChangeFields]:
        """Another table has a relation's name: its columns by their names, and all its rows."""
        name, other = tracked.name, self.by_oid.pop(holder, None)
        now = self._describe_now(holder, name)
        around = self._context
        if now is None or around is None or not around.publishes(holder):
            raise replaced(self._source, name, statement)
        if other is not None and statement == UNTOLD:
            raise replaced(self._source, name, f"{statement}; {other.name} was read, too")
        self._require_identity(now)
        self.by_oid[holder] = replace(_tracked(now), met=True)
        fields = _change(name, now, now, statement, rewrites=True)
        yield fields | {"before": tracked.described.relation}
        if other is not None and other.name != name:
            # It had its own name, which is free now, or another table's.
            taken = around.holder(other.name, 0)
            if taken is not None and taken != holder:
                yield from self._replaced(other, taken, statement)
            else:
                yield _change(other.name, other.described, now, statement, rewrites=False)

    def _require_unnamed(self, note: Mapping[str, Any]) -> None:
        """A table that is not followed had the name of one that is: its rows came, and were passed over."""
        place = note["before"]["schema"], note["before"]["name"]
        for tracked in self.by_oid.values():
            if _names(tracked.described) == place:
                raise replaced(self._source, tracked.name, note["tag"])

    def _holder(self, name: str, xid: int) -> int | None:
        return None if self._context is None else self._context.holder(name, xid)

    def _require_identity(self, each: Described) -> None:
        """Rows would come with NULLs for their old values, and nothing would show it."""
        if each.document["partial"]:
            raise identity_lost(self._source, each.name)

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
        """A description from a RELATION message: names and types are there, the rest is not.

        The catalog has it, if it is not ahead: but not which key it was that rows had here.
        """
        now = self._describe_now(stream.oid, tracked.name)
        if (
            now is not None
            and _names(now) == (stream.namespace, stream.name)
            and _columns_match(now, stream)
        ):
            same_key = now.document["key"] == tracked.described.document["key"]
            document = {**now.document, "key": now.document["key"] if same_key else []}
            return described(tracked.name, document)
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


def _view_name(each: Described) -> str:
    """What views call a table by default."""
    is_public = each.schema_name == "public"
    return each.table_name if is_public else f"{each.schema_name}.{each.table_name}"


def renamed_by_place(before: Sequence[str], now: Described) -> dict[str, str] | None:
    """Old to new names of a table's columns; None where it is not known which are which.

    Columns never change their places, and the number of one that was dropped is not used again: as long
    as there are as many as ever were, those with other names were renamed.
    """
    names = now.relation.schema.names
    if not set(before) - set(names) or not set(names) - set(before):
        return {}
    numbers = [column.number for column in now.columns]
    if numbers != list(range(1, len(before) + 1)) or len(names) != len(before):
        return None
    return {old: new for old, new in zip(before, names, strict=True) if old != new}


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


def replaced(source: str, relation: str, statement: str) -> SourceError:
    return SourceError(
        "table-replaced",
        f"another table has the name {relation} in PostgreSQL source {source} now",
        source=source,
        retryable=False,
        detail=f"its changes are not in the feed; the one that had the name left it by: {statement}",
        hint=rebuild_command(source, allow_setup=True),
    )


def _untellable(source: str, relation: str, before: Sequence[str], now: Described) -> SourceError:
    return SourceError(
        "schema-unknown",
        f"{relation} of PostgreSQL source {source} has other columns, and nothing recorded what "
        "became of the old ones",
        source=source,
        retryable=False,
        detail=f"it had {', '.join(before)}, and has {', '.join(now.relation.schema.names)}",
        hint=rebuild_command(source),
    )
