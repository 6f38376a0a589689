"""The ``[knowledge]`` tables of ``viewkeeper.toml``, from the mapping that TOML gives to `Knowledge`.

    [[knowledge.replacements]]
    relation = "crm.customers"
    by = "erp.party"
    containment = "subset"          # crm.customers is a subset of erp.party
    attributes = { cust_id = "party_id", name = "upper(full_name)" }

    [[knowledge.joins]]
    left = "crm.customers"
    right = "erp.addresses"
    on = { cust_id = "party_id" }

    [knowledge.views.sales]
    dispensable = ["phone"]

Pure: the caller reads the file; names are looked up in the catalog. What is not there (a table that was
dropped, or is yet to be made; a column that went) is no error: it can't be used now, and a note says so. Names
that the file had right when it was written are followed to what they are now, by the lineages that views keep.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from viewkeeper.algebra.expressions import Column, Expression, substituted
from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.evolution.changes import ChangeType, SchemaChange
from viewkeeper.evolution.knowledge import Containment, JoinConstraint, Knowledge, Replacement
from viewkeeper.evolution.lineage import Lineages, catalogs_then, steps_since
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.names import Name

_REPLACEMENT = ("relation", "by", "containment", "attributes", "trusted")
_JOIN = ("left", "right", "on")
# Names the relation in the little query by which an expression is read; no column may be called so.
_ALIAS = "replacement"
T = TypeVar("T", Replacement, JoinConstraint)
# What a name leads to that nothing has: else the text is wrong, whatever there is.
_ABSENT = ("unknown-relation", "unknown-source", "unknown-column")
# What a right text may come to when a column under it gets another type.
_MISFIT = ("type-mismatch", "unsupported-cast", "wrong-arguments", "decimal-out-of-range")


@dataclass(frozen=True)
class KnowledgeRead:
    """What the file says as far as it can be used now, and notes on the rest."""

    knowledge: Knowledge = field(default_factory=Knowledge)
    notes: tuple[str, ...] = ()


def entries_of(tables: Mapping[str, Any]) -> tuple[str, ...]:
    """For each replacement and join a short text, the same as long as it says the same."""
    return tuple(
        _digest(table) for word in ("replacements", "joins") for table in _list(tables, word)
    )


def _digest(table: Any) -> str:
    text = json.dumps(table, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_knowledge(
    tables: Mapping[str, Any], catalog: Catalog, lineage: Lineages = ()
) -> KnowledgeRead:
    """The knowledge base; raises UsageError ``bad-knowledge`` for what is wrong in any catalog."""
    _require_known(tables, ("replacements", "joins", "views"), "[knowledge]")
    places = [_Place(catalog), *_places(catalog, lineage)]
    notes: list[str] = []
    replacements: list[Replacement] = []
    joins: list[JoinConstraint] = []
    for number, table in enumerate(_list(tables, "replacements"), 1):
        read = [_replacement(table, number, place) for place in places]
        replacements += _meant(read, _digest(table), notes)
    for number, table in enumerate(_list(tables, "joins"), 1):
        joins += _meant([_join(table, number, p) for p in places], _digest(table), notes)
    return KnowledgeRead(Knowledge(tuple(replacements), tuple(joins)), tuple(notes))


# -- what names mean ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Relations that an entry may have been written over, and what has happened to them since.

    ``said``: the entries that were in the file before that.
    """

    catalog: Catalog
    steps: tuple[SchemaChange, ...] = ()
    said: frozenset[str] = frozenset()


def _places(catalog: Catalog, lineage: Lineages) -> Iterator[_Place]:
    for then, chosen in catalogs_then(lineage, catalog):
        said = frozenset.intersection(*(frozenset(each.said) for each in chosen))
        yield _Place(then, steps_since(chosen, catalog), said)


@dataclass
class _Reading(Generic[T]):
    """An entry read over one place: what it says there, by today's names, and what is missing."""

    where: str
    place: _Place
    items: list[T] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def lacks(self, what: str, hint: str) -> None:
        told = f"{self.where} can't be used now: {what}"
        self.missing.append(told + (f" ({hint})" if hint else ""))


def _meant(readings: Sequence[_Reading[T]], digest: str, notes: list[str]) -> list[T]:
    """What an entry means now; the first reading is that over the present.

    One that was there before names changed means what it meant then, also where its names are in use
    again for something else. Of any other we believe that it was written for the present.
    """
    whole = [reading for reading in readings if not reading.missing]
    whole.sort(key=lambda reading: digest not in reading.place.said)
    if whole:
        return whole[0].items
    least = min(readings, key=lambda reading: len(reading.missing))
    notes += least.missing
    return least.items


def view_tables(tables: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """What ``[knowledge.views.NAME]`` says, by view; for `preferences_of`."""
    views = tables.get("views", {})
    if not isinstance(views, dict) or not all(isinstance(v, dict) for v in views.values()):
        raise _bad("[knowledge.views] is not a table of tables", hint="[knowledge.views.NAME]")
    return views


def _replacement(table: Any, number: int, place: _Place) -> _Reading[Replacement]:
    where = f"replacement {number} in [knowledge]"
    found: _Reading[Replacement] = _Reading(where, place)
    _require_known(table, _REPLACEMENT, where)
    pairs = _pairs(table, "attributes", where)
    containment, trusted = _containment(table, where), table.get("trusted", False)
    if not isinstance(trusted, bool):
        raise _bad(f"{where}: trusted is not true or false")
    texts = [_text(table, word, where) for word in ("relation", "by")]
    if texts[0] == texts[1]:
        raise _bad(f"{where} replaces {texts[0]} by itself")
    lost, by = (_relation(text, found) for text in texts)
    if lost is None or by is None:
        return found
    if trusted and lost.name.source != by.name.source:
        raise _bad(
            f"{where} can't be trusted at every moment",
            detail=f"{lost.name} and {by.name} are in different sources, which commit separately",
            hint="leave out trusted: the rows are then compared when it matters",
        )
    attributes = [(_column(lost, a, found), _expression(by, e, found)) for a, e in pairs]
    usable = tuple((a, e) for a, e in attributes if a is not None and e is not None)
    if usable:
        knowledge = Knowledge((Replacement(lost.name, by.name, usable, containment, trusted),))
        found.items = list(_since(knowledge, place).replacements)
    return found


def _join(table: Any, number: int, place: _Place) -> _Reading[JoinConstraint]:
    where = f"join {number} in [knowledge]"
    found: _Reading[JoinConstraint] = _Reading(where, place)
    _require_known(table, _JOIN, where)
    pairs = _pairs(table, "on", where)
    left, right = (_relation(_text(table, word, where), found) for word in ("left", "right"))
    if left is None or right is None:
        return found
    on = [(_column(left, a, found), _column(right, b, found)) for a, b in pairs]
    usable = tuple((a, b) for a, b in on if a is not None and b is not None)
    if len(usable) == len(on):
        knowledge = Knowledge((), (JoinConstraint(left.name, right.name, usable),))
        found.items = list(_since(knowledge, place).joins)
    return found


def _since(knowledge: Knowledge, place: _Place) -> Knowledge:
    """By the names of now. Types are looked at when a replacement is needed, as they are then."""
    for step in place.steps:
        if not isinstance(step, ChangeType):
            knowledge = knowledge.after(step)
    return knowledge


def _text(table: Mapping[str, Any], word: str, where: str) -> str:
    text = table.get(word)
    if not isinstance(text, str):
        raise _bad(f"{where} has no {word}", hint=f'{word} = "source.table"')
    return text


def _relation(text: str, reading: _Reading[Any]) -> CatalogRelation | None:
    try:
        return reading.place.catalog.find(tuple(Name(part) for part in text.split(".")))
    except UsageError as error:
        if error.code not in _ABSENT:
            raise
        reading.lacks(error.message, error.hint)
        return None


def _column(relation: CatalogRelation, text: str, reading: _Reading[Any]) -> str | None:
    found = Name(text).among(relation.schema.names)
    if len(found) == 1:
        return found[0]
    hint = did_you_mean(text, relation.schema.names)
    reading.lacks(f"{relation.name} has no column {text}", hint)
    return None


def _expression(relation: CatalogRelation, text: str, reading: _Reading[Any]) -> Expression | None:
    """An expression over the relation's columns, which it names without any alias."""
    if text in relation.schema:
        return Column(text)
    query = f"SELECT {text} AS value FROM {relation.name} AS {_ALIAS}"
    try:
        definition = parse_view(f"knowledge of {relation.name}", query, Catalog((relation,)))
    except UsageError as error:
        if error.code not in (*_ABSENT, *_MISFIT):
            raise
        reading.lacks(f"{text} means nothing over {relation.name}", error.message)
        return None
    (term,) = definition.terms
    plain: dict[str, Expression] = {
        f"{_ALIAS}.{column}": Column(column) for column in relation.schema.names
    }
    return substituted(term.outputs[0].expression, plain)


def _containment(table: Mapping[str, Any], where: str) -> Containment:
    value = table.get("containment", "unknown")
    known = [containment.value for containment in Containment]
    if value not in known:
        raise _bad(
            f"{where}: {value} is no containment",
            detail=f"it is one of {', '.join(known)}",
            hint=did_you_mean(str(value), known),
        )
    return Containment(value)


def _pairs(table: Mapping[str, Any], word: str, where: str) -> list[tuple[str, str]]:
    pairs = table.get(word)
    if not isinstance(pairs, dict) or not pairs:
        raise _bad(f"{where} has no {word}", hint=f'{word} = {{ mine = "theirs" }}')
    if not all(isinstance(value, str) for value in pairs.values()):
        raise _bad(f"{where}: every one of {word} is a text in quotes")
    return list(pairs.items())


def _list(tables: Mapping[str, Any], word: str) -> list[Any]:
    found = tables.get(word, [])
    if not isinstance(found, list):
        raise _bad(f"{word} in [knowledge] is not a list", hint=f"[[knowledge.{word}]]")
    return found


def _require_known(table: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(table, dict):
        raise _bad(f"{where} is not a table")
    for word in table:
        if word not in known:
            raise _bad(
                f"{where} has an unknown entry {word}",
                detail=f"known are {', '.join(known)}",
                hint=did_you_mean(word, known),
            )


def _bad(what: str, *, detail: str = "", hint: str = "") -> UsageError:
    return UsageError("bad-knowledge", what, detail=detail, hint=hint)
