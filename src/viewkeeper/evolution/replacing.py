"""Which rewritings of a view there are after something was lost: the candidates, in a fixed order.

| lost | candidates |
|---|---|
| attribute A of R | replace R by S; keep R and take A from a joined S; do without A |
| relation R | replace R by S; do without R |
| type of A | cast it back where that can't fail, or as a lost attribute |

Every candidate is a set of edits for `rewriting` to carry out, and says what it makes of the extent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.expressions import (
    Cast,
    Column,
    Comparison,
    Expression,
    Literal,
    substituted,
)
from viewkeeper.algebra.inference import type_of
from viewkeeper.algebra.types import Kind, Schema, Type
from viewkeeper.errors import UsageError
from viewkeeper.evolution.changes import (
    ChangeType,
    DropAttribute,
    DropRelation,
    relation_in,
    widens,
)
from viewkeeper.evolution.knowledge import (
    Containment,
    JoinConstraint,
    Knowledge,
    Replacement,
    offers,
)
from viewkeeper.evolution.quality import Extent
from viewkeeper.evolution.rewriting import Edit, EvolvingView, Refused, used_columns
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import Occurrence, RelationName, Term, ViewDefinition

Loss = DropAttribute | DropRelation | ChangeType

# What the new rows are to the old ones, when the lost relation was … of its replacement.
_EXTENT = {
    Containment.EQUAL: Extent.EQUAL,
    Containment.SUBSET: Extent.SUPERSET,
    Containment.SUPERSET: Extent.SUBSET,
    Containment.UNKNOWN: Extent.ANY,
}


@dataclass(frozen=True)
class Candidate:
    """One way to go on. ``refusal``: why it can't be carried out, where that is known already."""

    text: str
    edits: Mapping[int, Edit]
    extent: Extent = Extent.EQUAL
    trusted: bool = False
    refusal: str = ""


def places_of(
    definition: ViewDefinition, name: RelationName, attribute: str | None = None
) -> tuple[tuple[int, str], ...]:
    """Term and alias of every occurrence of the relation that reads the attribute, if one is given."""
    return tuple(
        (index, o.alias)
        for index, term in enumerate(definition.all_terms)
        for o in term.occurrences
        if o.name == name and (attribute is None or attribute in used_columns(term, o.alias))
    )


def candidates(
    view: EvolvingView, loss: Loss, knowledge: Knowledge, catalog: Catalog
) -> Iterator[Candidate]:
    """All rewritings that the knowledge base and the preferences suggest, good or not."""
    attribute = None if isinstance(loss, DropRelation) else loss.attribute
    places = places_of(view.definition, loss.relation, attribute)
    if isinstance(loss, ChangeType):
        yield _cast_back(view, loss, places)
    for known in knowledge.replacing(loss.relation):
        by = relation_in(catalog, known.by)
        if by is None:
            continue
        replacement = offers(by, known)
        yield _replaced(view, replacement, by, places)
        if attribute is not None and replacement.expression(attribute) is not None:
            for join in knowledge.joining(loss.relation, by.name):
                yield _joined(view, replacement, join, by, places, attribute, catalog)
    yield _without(view, loss, places, attribute)


# -- replace R by S ----------------------------------------------------------------------------------


def _replaced(
    view: EvolvingView,
    replacement: Replacement,
    by: CatalogRelation,
    places: tuple[tuple[int, str], ...],
) -> Candidate:
    edits: dict[int, Edit] = {}
    refusal = ""
    for index, alias in places:
        term = view.definition.all_terms[index]
        edit = edits.setdefault(index, Edit())
        before, after = term.occurrence(alias), Occurrence(alias, by.name, by.schema, by.key)
        if alias in view.preferences.irreplaceable.relations:
            refusal = f"the relation {alias} is not replaceable"
        edit.occurrences[alias] = after
        for column in used_columns(term, alias):
            expression = replacement.expression(column)
            wanted = before.schema.type_of(column)
            moved = None if expression is None else _as(expression, after, wanted)
            if moved is None:
                edit.lost.add(before.qualified(column))
            else:
                edit.columns[before.qualified(column)] = moved
    text = f"replace {replacement.relation} by {by.name}"
    extent = _EXTENT[replacement.containment]
    return Candidate(text, edits, extent, replacement.trusted, refusal)


def _as(expression: Expression, occurrence: Occurrence, wanted: Type) -> Expression | None:
    """The expression over the occurrence, in the wanted type; None when that may fail."""
    found = type_of(expression, occurrence.schema)
    columns: dict[str, Expression] = {
        c: Column(occurrence.qualified(c)) for c in occurrence.schema.names
    }
    full = substituted(expression, columns)
    if found == wanted:
        return full
    return Cast(full, wanted) if _casts_safely(found, wanted) else None


def _casts_safely(found: Type, wanted: Type) -> bool:
    """Whether every value of one type has its counterpart in the other."""
    return widens(found, wanted) or (wanted.kind is Kind.STRING and _can_be_cast(found, wanted))


def _can_be_cast(found: Type, wanted: Type) -> bool:
    try:
        type_of(Cast(Literal(None, found), wanted), Schema(()))
    except UsageError:
        return False
    return True


# -- keep R, take A from a joined S -------------------------------------------------------------------


def _joined(
    view: EvolvingView,
    replacement: Replacement,
    join: JoinConstraint,
    by: CatalogRelation,
    places: tuple[tuple[int, str], ...],
    attribute: str,
    catalog: Catalog,
) -> Candidate:
    kept = relation_in(catalog, join.left)
    edits: dict[int, Edit] = {}
    refusal = ""
    if kept is None or any(a not in kept.schema or b not in by.schema for a, b in join.on):
        return Candidate(f"take {attribute} from {by.name}", {}, refusal="the join is lost too")
    for index, alias in places:
        term = view.definition.all_terms[index]
        edit = edits.setdefault(index, Edit())
        before = term.occurrence(alias)
        added = Occurrence(_fresh(term, edit, alias), by.name, by.schema, by.key)
        edit.added.append(added)
        for mine, theirs in join.on:
            columns = (Column(before.qualified(mine)), Column(added.qualified(theirs)))
            edit.conditions.append(Comparison("=", *columns))
        expression = replacement.expression(attribute)
        wanted = before.schema.type_of(attribute)
        moved = None if expression is None else _as(expression, added, wanted)
        if moved is None:
            refusal = f"{by.name} has it in a type that may not fit"
        else:
            edit.columns[before.qualified(attribute)] = moved
    # Joined by its key, it has at most one row for each: nothing is multiplied.
    keyed = bool(by.key) and set(by.key) <= {b for _, b in join.on}
    text = f"take {join.left}.{attribute} from {by.name}, joined"
    return Candidate(text, edits, _joined_extent(replacement, keyed), refusal=refusal)


def _joined_extent(replacement: Replacement, keyed: bool) -> Extent:
    if not keyed or replacement.containment is Containment.UNKNOWN:
        return Extent.ANY
    # A row that finds no partner goes; where R is within S every row has one.
    lossless = replacement.containment in (Containment.EQUAL, Containment.SUBSET)
    return Extent.EQUAL if lossless else Extent.SUBSET


def _fresh(term: Term, edit: Edit, alias: str) -> str:
    taken = {o.alias for o in (*term.occurrences, *edit.added)}
    number = 2
    while f"{alias}{number}" in taken:
        number += 1
    return f"{alias}{number}"


# -- do without ---------------------------------------------------------------------------------------


def _without(
    view: EvolvingView, loss: Loss, places: tuple[tuple[int, str], ...], attribute: str | None
) -> Candidate:
    edits: dict[int, Edit] = {}
    refusal = ""
    for index, alias in places:
        occurrence = view.definition.all_terms[index].occurrence(alias)
        edit = edits.setdefault(index, Edit())
        if attribute is not None:
            edit.lost.add(occurrence.qualified(attribute))
            continue
        edit.occurrences[alias] = None
        edit.lost |= set(occurrence.qualified_schema.names)
        if alias not in view.preferences.dispensable.relations:
            refusal = f"the relation {alias} is not dispensable"
    what = loss.relation if attribute is None else f"{loss.relation}.{attribute}"
    return Candidate(f"do without {what}", edits, refusal=refusal)


# -- types --------------------------------------------------------------------------------------------


def _cast_back(
    view: EvolvingView, change: ChangeType, places: tuple[tuple[int, str], ...]
) -> Candidate:
    edits: dict[int, Edit] = {}
    for index, alias in places:
        occurrence = view.definition.all_terms[index].occurrence(alias)
        edit = edits.setdefault(index, Edit())
        fields = tuple(
            replace(f, type=change.after) if f.name == change.attribute else f
            for f in occurrence.schema
        )
        edit.occurrences[alias] = replace(
            occurrence, schema=replace(occurrence.schema, fields=fields)
        )
        full = occurrence.qualified(change.attribute)
        edit.columns[full] = Cast(Column(full), change.before)
    safe = _casts_safely(change.after, change.before)
    refusal = "" if safe else f"not every {change.after} is a {change.before}"
    text = f"cast {change.relation}.{change.attribute} back to {change.before}"
    # It is the same column, and its owner has converted the values: they are read again, as after any
    # rewriting of rows, and no other relation's rows come into the view.
    return Candidate(text, edits, refusal=refusal)


def require_possible(candidate: Candidate) -> None:
    """Raises Refused where the candidate is known to be impossible."""
    if candidate.refusal:
        raise Refused(candidate.refusal)
