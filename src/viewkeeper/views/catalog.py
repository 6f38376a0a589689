"""What the sources offer, as data: the relations a view may name, their columns and their keys.

The caller, who knows the sources, fills it; this file knows no database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from viewkeeper.algebra.types import Schema
from viewkeeper.errors import UsageError, did_you_mean, invariant
from viewkeeper.views.definition import RelationName
from viewkeeper.views.names import Name, listed


@dataclass(frozen=True)
class CatalogRelation:
    """One relation of a source. ``key``: the columns of its primary key, empty without one."""

    name: RelationName
    schema: Schema
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        invariant(
            all(column in self.schema for column in self.key),
            f"the key of {self.name} names columns that it does not have",
            detail=f"key {self.key}, columns {self.schema.names}",
        )


@dataclass(frozen=True)
class Catalog:
    """All relations of all sources."""

    relations: tuple[CatalogRelation, ...] = ()

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, once, in order of appearance."""
        return tuple(dict.fromkeys(relation.name.source for relation in self.relations))

    def of_source(self, source: str) -> tuple[CatalogRelation, ...]:
        return tuple(r for r in self.relations if r.name.source == source)

    def find(self, path: tuple[Name, ...]) -> CatalogRelation:
        """The relation named ``source.table`` or ``source.schema.table``; raises UsageError."""
        written = ".".join(part.text for part in path)
        if len(path) < 2:
            raise self._without_source(path[0])
        candidates = self.of_source(self._source(path[0]))
        found = [r for r in candidates if _fits(path[1:], r.name.relation)]
        exact = [r for r in found if r.name.relation == ".".join(part.text for part in path[1:])]
        found = exact or found
        if len(found) == 1:
            return found[0]
        names = [str(relation.name) for relation in candidates]
        if found:
            raise UsageError(
                "ambiguous-relation",
                f"{written} may mean several relations",
                detail=f"it fits {listed(str(relation.name) for relation in found)}",
                hint="write the name exactly, in backticks",
            )
        raise UsageError(
            "unknown-relation",
            f"there is no relation {written}",
            detail=f"source {candidates[0].name.source} has {listed(names)}",
            hint=did_you_mean(written, names, "check the name and the source's tables"),
        )

    def _source(self, name: Name) -> str:
        found = name.among(self.sources)
        if len(found) == 1:
            return found[0]
        raise UsageError(
            "unknown-source",
            f"there is no source {name.text}",
            detail=f"the sources are {listed(self.sources)}" if self.sources else "there are none",
            hint=did_you_mean(name.text, self.sources, "a table is written source.table"),
        )

    def _without_source(self, name: Name) -> UsageError:
        having = [
            str(relation.name)
            for relation in self.relations
            if name.matches(relation.name.relation.rsplit(".", 1)[-1])
        ]
        return UsageError(
            "relation-without-source",
            f"{name.text} does not say which source it is in",
            detail="a table is written source.table or source.schema.table",
            hint=f"write {' or '.join(having)}" if having else "put the source's name before it",
        )


def _fits(path: Iterable[Name], relation: str) -> bool:
    parts = tuple(path)
    spellings = relation.split(".")
    return len(parts) == len(spellings) and all(
        part.matches(spelling) for part, spelling in zip(parts, spellings, strict=True)
    )
