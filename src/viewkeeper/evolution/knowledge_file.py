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

Pure: the caller reads the file; names are checked against the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewkeeper.algebra.expressions import Column, Expression, substituted
from viewkeeper.errors import UsageError, did_you_mean
from viewkeeper.evolution.knowledge import Containment, JoinConstraint, Knowledge, Replacement
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.names import Name
from viewkeeper.views.parsing.parser import parse_view

_REPLACEMENT = ("relation", "by", "containment", "attributes", "trusted")
_JOIN = ("left", "right", "on")
# Names the relation in the little query by which an expression is read; no column may be called so.
_ALIAS = "replacement"


def read_knowledge(tables: Mapping[str, Any], catalog: Catalog) -> Knowledge:
    """The knowledge base; raises UsageError ``bad-knowledge``, or what the catalog says of a name."""
    _require_known(tables, ("replacements", "joins", "views"), "[knowledge]")
    replacements = _list(tables, "replacements")
    joins = _list(tables, "joins")
    return Knowledge(
        tuple(_replacement(table, i, catalog) for i, table in enumerate(replacements, 1)),
        tuple(_join(table, i, catalog) for i, table in enumerate(joins, 1)),
    )


def still_known(tables: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """The tables without what is about relations that are gone: it has served its purpose."""
    names = {str(relation.name) for relation in catalog.relations}

    def about(table: Any, *words: str) -> bool:
        return not isinstance(table, Mapping) or all(table.get(w, "") in names for w in words)

    kept = dict(tables)
    for list_name, words in (("replacements", ("relation",)), ("joins", ("left", "right"))):
        if isinstance(kept.get(list_name), list):
            kept[list_name] = [table for table in kept[list_name] if about(table, *words)]
    return kept


def view_tables(tables: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """What ``[knowledge.views.NAME]`` says, by view; for `preferences_of`."""
    views = tables.get("views", {})
    if not isinstance(views, dict) or not all(isinstance(v, dict) for v in views.values()):
        raise _bad("[knowledge.views] is not a table of tables", hint="[knowledge.views.NAME]")
    return views


def _replacement(table: Any, number: int, catalog: Catalog) -> Replacement:
    where = f"replacement {number} in [knowledge]"
    _require_known(table, _REPLACEMENT, where)
    lost = _relation(table, "relation", where, catalog)
    by = _relation(table, "by", where, catalog)
    if lost == by:
        raise _bad(f"{where} replaces {lost.name} by itself")
    pairs = _pairs(table, "attributes", where)
    trusted = table.get("trusted", False)
    if not isinstance(trusted, bool):
        raise _bad(f"{where}: trusted is not true or false")
    if trusted and lost.name.source != by.name.source:
        raise _bad(
            f"{where} can't be trusted at every moment",
            detail=f"{lost.name} and {by.name} are in different sources, which commit separately",
            hint="leave out trusted: the rows are then compared when it matters",
        )
    attributes = tuple((_column(lost, a, where), _expression(by, e)) for a, e in pairs)
    return Replacement(lost.name, by.name, attributes, _containment(table, where), trusted)


def _join(table: Any, number: int, catalog: Catalog) -> JoinConstraint:
    where = f"join {number} in [knowledge]"
    _require_known(table, _JOIN, where)
    left = _relation(table, "left", where, catalog)
    right = _relation(table, "right", where, catalog)
    on = tuple(
        (_column(left, a, where), _column(right, b, where)) for a, b in _pairs(table, "on", where)
    )
    return JoinConstraint(left.name, right.name, on)


def _relation(table: Mapping[str, Any], word: str, where: str, catalog: Catalog) -> CatalogRelation:
    text = table.get(word)
    if not isinstance(text, str):
        raise _bad(f"{where} has no {word}", hint=f'{word} = "source.table"')
    return catalog.find(tuple(Name(part) for part in text.split(".")))


def _column(relation: CatalogRelation, text: str, where: str) -> str:
    found = Name(text).among(relation.schema.names)
    if len(found) == 1:
        return found[0]
    raise _bad(
        f"{where}: {relation.name} has no column {text}",
        detail=f"its columns are {', '.join(relation.schema.names)}",
        hint=did_you_mean(text, relation.schema.names),
    )


def _expression(relation: CatalogRelation, text: str) -> Expression:
    """An expression over the relation's columns, which it names without any alias."""
    if text in relation.schema:
        return Column(text)
    query = f"SELECT {text} AS value FROM {relation.name} AS {_ALIAS}"
    definition = parse_view(f"knowledge of {relation.name}", query, Catalog((relation,)))
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
