"""A simulated source whose schema changes too: what it holds, and what it can't answer any more."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.algebra import Bag
from viewkeeper.algebra.expressions import Cast, Column, Literal, Output
from viewkeeper.algebra.types import Field, Kind
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
)
from viewkeeper.evolution.messages import QueryBroken, ReadRelation, RowsArrived
from viewkeeper.protocols.messages import Reflected
from viewkeeper.simulator.source import ScriptedSource
from viewkeeper.views.definition import RelationName

Contents = dict[RelationName, Bag]


def contents_after(contents: Mapping[RelationName, Bag], update: Update) -> Contents:
    """A source's relations once the update has happened."""
    if isinstance(update, SchemaChanged):
        return _changed(dict(contents), update.change)
    after = dict(contents)
    for name, change in update.changes:
        after[name] = after[name] + change
    return after


def _changed(contents: Contents, change: SchemaChange) -> Contents:
    name = change.relation
    match change:
        case AddRelation(_, schema):
            contents[name] = Bag(schema)
        case DropRelation():
            del contents[name]
        case Rewrite():
            contents[name] = Bag(contents[name].schema)
        case RenameRelation():
            contents[change.renamed] = contents.pop(name)
        case _:
            rows = contents[name]
            outputs = [out for f in rows.schema if (out := _column_after(f, change)) is not None]
            if isinstance(change, AddAttribute):
                outputs.append(Output(change.field.name, Literal(None, change.field.type)))
            contents[name] = rows.select(tuple(outputs))
    return contents


def _column_after(field: Field, change: SchemaChange) -> Output | None:
    column = Column(field.name)
    match change:
        case RenameAttribute(_, before, after) if before == field.name:
            return Output(after, column)
        case DropAttribute(_, attribute) if attribute == field.name:
            return None
        case ChangeType(_, attribute, _, after_type) if attribute == field.name:
            return Output(field.name, Cast(column, after_type))
        case _:
            return Output(field.name, column)


class EvolvingSource(ScriptedSource[Update]):
    """A source of transactions and schema changes that answers single reads, or can't any more.

    A schema change waits until all before it are visible, and is visible at once: a database locks
    the relation for it.
    """

    def __init__(
        self,
        name: str,
        initial: Mapping[RelationName, Bag],
        script: tuple[Update, ...],
        *,
        inversions: bool,
    ) -> None:
        super().__init__(name, script, inversions=inversions)
        self._contents: Contents = {r: rows for r, rows in initial.items() if r.source == name}

    def is_seen_at_once(self, made: Update) -> bool:
        return isinstance(made, SchemaChanged)

    def take_effect(self, made: Update) -> None:
        self._contents = contents_after(self._contents, made)

    def answer(self, question: ReadRelation) -> RowsArrived | QueryBroken:
        """The rows, or an error when something that was asked for is not there."""
        rows = self._contents.get(RelationName(self.name, question.relation))
        asked = (*question.columns, *question.key_columns)
        if rows is None or any(column not in rows.schema for column in asked):
            return QueryBroken(question.question)
        if question.keys is not None and not _comparable(rows, question):
            return QueryBroken(question.question)
        if question.keys is not None:
            rows = rows.matching(question.key_columns, question.keys)
        found = rows.select(tuple(Output(f"#{c}", Column(c)) for c in question.columns))
        return RowsArrived(question.question, found, self._reflected)

    @property
    def _reflected(self) -> Reflected:
        return Reflected(self.committed, without=frozenset(self.invisible))


def _comparable(rows: Bag, question: ReadRelation) -> bool:
    """Whether the keys fit the columns: a type may have changed."""
    return all(
        (rows.schema.type_of(column).kind is Kind.STRING) is (field.type.kind is Kind.STRING)
        for column, field in zip(question.key_columns, question.keys.schema, strict=True)
    )
