"""Base relations that a view keeps a copy of (header ``keep``), so that no source is asked for their rows.

A copy has the columns that the view uses. It is filled with the view, changed by the same transactions
as the view, and so stands where the view stands: it reflects everything before a batch and nothing of
it. A relation that nothing is joined with would be kept in vain, and is not.

Knows what a copy is made of, not who holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.types import Schema
from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.names import listed

_UNSAFE = re.compile(r"[^\w.]")


@dataclass(frozen=True)
class KeptRelation:
    """A base relation that is kept, with the columns that the view uses."""

    name: RelationName
    schema: Schema

    @property
    def store(self) -> str:
        """What the copy is called among the view's stores."""
        return "keep." + _UNSAFE.sub(lambda found: f"..{ord(found[0]):x}.", str(self.name))

    def of(self, rows: Any, *further: str) -> Any:
        """The kept columns of the relation's rows, and further ones that these have."""
        return rows.only((*self.schema.names, *further))


def copies(definition: ViewDefinition, asked: Iterable[RelationName]) -> tuple[KeptRelation, ...]:
    """The relations that are to be kept, of those that somebody would be asked for."""
    needed = set(asked)
    wanted = dict.fromkeys(name for name in kept_relations(definition) if name in needed)
    schemas = {o.name: o.schema for term in definition.all_terms for o in term.occurrences}
    return tuple(KeptRelation(name, schemas[name]) for name in wanted)


def kept_relations(definition: ViewDefinition) -> tuple[RelationName, ...]:
    """The relations that ``keep`` names, each read by the view; raises UsageError."""
    written = dict(definition.settings).get("keep", "")
    return tuple(_kept(definition, name.strip()) for name in written.split(",") if written)


def still_kept(definition: ViewDefinition) -> list[str]:
    """Of the relations that ``keep`` names, those that the view reads, where it may have evolved.

    One under a new name is another one: what is kept of it belongs to the old name.
    """
    read = {str(name).casefold() for name in definition.relations}
    written = dict(definition.settings).get("keep", "").split(",")
    return [name.strip() for name in written if name.strip().casefold() in read]


def _kept(definition: ViewDefinition, name: str) -> RelationName:
    for relation in definition.relations:
        if str(relation).casefold() == name.casefold():
            return relation
    known = [str(relation) for relation in definition.relations]
    raise UsageError(
        "bad-header",
        f"{name} can't be kept: the view does not read it",
        detail=f"it reads {listed(known)}",
        hint=did_you_mean(name, known, "write -- keep: source.table, source.table"),
    )
