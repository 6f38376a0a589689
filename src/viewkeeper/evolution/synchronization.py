"""View synchronization: what a view becomes when a schema under it changes.

Paper: DyDa, section 5.2.1 (Figure 5, for one view and one change); the candidates and their choice come
from its predecessor EVE. Pure and without messages, so no concurrent change can disturb it.

The result is one of five: `Untouched`, `Offered` (a new attribute the view could show), `Renamed`
(other names underneath, same rows, same columns), `Synchronized` (another definition, or other types
under it, with its mapping, reasons and quality), or `Retired` (it can't be saved, or its text does not fit;
its last state stays readable).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from viewkeeper.algebra.expressions import Cast, Column, Literal, Output, columns_of
from viewkeeper.algebra.inference import common_type, type_of
from viewkeeper.algebra.types import Field, Schema, Type
from viewkeeper.errors import UsageError
from viewkeeper.evolution.changes import (
    AddAttribute,
    ChangeType,
    DropAttribute,
    DropRelation,
    Rename,
    RenameAttribute,
    RenameRelation,
    Rewrite,
    SchemaChange,
    relation_in,
)
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.preferences import Preferences
from viewkeeper.evolution.quality import Extent, Quality
from viewkeeper.evolution.replacing import Candidate, Loss, candidates, places_of, require_possible
from viewkeeper.evolution.rewriting import Edit, EvolvingView, Refused, rewritten
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import Occurrence, RelationName, Step, Term, ViewDefinition


@dataclass(frozen=True)
class Untouched:
    definition: ViewDefinition


@dataclass(frozen=True)
class Offered:
    """The view goes on as it is; its user may want the new attribute."""

    definition: ViewDefinition
    field: Field


@dataclass(frozen=True)
class Renamed:
    definition: ViewDefinition
    mapping: EvolutionMapping


@dataclass(frozen=True)
class Synchronized:
    """``others``: the candidates that were not chosen, each with the reason."""

    definition: ViewDefinition
    mapping: EvolutionMapping
    reason: str
    quality: Quality
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retired:
    """``stops``: nothing is gone, but the view's text does not fit what there is now."""

    reason: str
    others: tuple[str, ...] = ()
    stops: bool = False


Synchronization = Untouched | Offered | Renamed | Synchronized | Retired


def synchronized(
    view: EvolvingView, change: SchemaChange, knowledge: Knowledge, catalog: Catalog
) -> Synchronization:
    """What the view becomes; ``catalog`` is that after the change, ``knowledge`` that before it."""
    match change:
        case RenameAttribute() | RenameRelation():
            return _renamed(view, change, catalog)
        case DropRelation() | DropAttribute() | ChangeType() if _is_read(view, change):
            return _chosen(view, change, knowledge, catalog)
        case Rewrite(relation) if places_of(view.definition, relation):
            return _reread(view, change, catalog)
        case AddAttribute(relation, field) if places_of(view.definition, relation):
            return Offered(refreshed(view.definition, catalog), field)
        case _:
            return Untouched(refreshed(view.definition, catalog))


def _is_read(view: EvolvingView, change: Loss) -> bool:
    if isinstance(change, ChangeType) and change.before == change.after:
        return False
    attribute = None if isinstance(change, DropRelation) else change.attribute
    return bool(places_of(view.definition, change.relation, attribute))


def _renamed(view: EvolvingView, change: Rename, catalog: Catalog) -> Synchronization:
    edits: dict[int, Edit] = {}
    for index, alias in places_of(view.definition, change.relation):
        occurrence = view.definition.all_terms[index].occurrence(alias)
        edit = edits.setdefault(index, Edit(is_rename=True))
        edit.occurrences[alias] = _occurrence_renamed(occurrence, change)
        if isinstance(change, RenameAttribute):
            old, new = occurrence.qualified(change.before), occurrence.qualified(change.after)
            edit.columns[old] = Column(new)
    definition, mapping = rewritten(view, edits)
    definition = refreshed(definition, catalog)
    if not mapping.relations and not mapping.attributes:
        return Untouched(definition)
    return Renamed(definition, mapping)


def _occurrence_renamed(occurrence: Occurrence, change: Rename) -> Occurrence:
    match change:
        case RenameRelation():
            return replace(occurrence, name=change.renamed)
        case RenameAttribute(_, old, new):
            names = (new if c == old else c for c in occurrence.schema.names)
            key = tuple(new if c == old else c for c in occurrence.key)
            return replace(occurrence, schema=occurrence.schema.renamed(names), key=key)


def _retyped(view: EvolvingView, change: ChangeType, catalog: Catalog) -> Synchronized:
    """The same view over values of another type; its columns get the types that follow from it.

    Wider values are the same values: only what is computed from them must be looked at again. Else the
    source has converted them by itself, and all are read again. Raises Refused when the view's
    expressions mean nothing over the new type.
    """
    definition = _meaningful(view.definition, catalog)
    touched = _computed_from(view, change) if change.is_widening else _aliases(view, change)
    mapping = EvolutionMapping(touched=touched, trusted=not touched)
    what = "every value fits the wider type" if change.is_widening else "its values are read again"
    return Synchronized(
        definition, mapping, f"{change}: {what}", _quality(view, definition, mapping)
    )


def _aliases(view: EvolvingView, change: ChangeType) -> frozenset[str]:
    places = places_of(view.definition, change.relation, change.attribute)
    return frozenset(alias for _, alias in places)


def _computed_from(view: EvolvingView, change: ChangeType) -> frozenset[str]:
    """Occurrences whose column is not only shown as it is."""
    computed = set()
    for index, alias in places_of(view.definition, change.relation, change.attribute):
        term = view.definition.all_terms[index]
        column = Column(term.occurrence(alias).qualified(change.attribute))
        plain = all(
            o.expression == column or column.name not in columns_of(o.expression)
            for o in term.outputs
        )
        if term.grouping is not None or view.definition.steps or not plain:
            computed.add(alias)
    return frozenset(computed)


def _reread(view: EvolvingView, change: Rewrite, catalog: Catalog) -> Synchronization:
    """The same view over other rows: what the extent holds of the old ones tells the difference."""
    definition = refreshed(view.definition, catalog)
    aliases = frozenset(alias for _, alias in places_of(definition, change.relation))
    mapping = EvolutionMapping(touched=aliases, trusted=False)
    reason = f"{change}: its rows must be read anew"
    return Synchronized(definition, mapping, reason, _quality(view, definition, mapping))


# -- the choice -----------------------------------------------------------------------------------


def _chosen(
    view: EvolvingView,
    change: Loss,
    knowledge: Knowledge,
    catalog: Catalog,
) -> Synchronization:
    """The best of the candidates that satisfy the view; the first among equals.

    A column that only has another type is still there: the view goes on over it if it can.
    """
    found: list[tuple[Candidate, Synchronized]] = []
    refused: list[str] = []
    if isinstance(change, ChangeType):
        try:
            return _retyped(view, change, catalog)
        except Refused as refusal:
            refused.append(f"go on with {change.after}: {refusal}")
    for candidate in candidates(view, change, knowledge, catalog):
        try:
            found.append((candidate, _carried_out(view, change, candidate, catalog)))
        except Refused as refusal:
            refused.append(f"{candidate.text}: {refusal}")
    if not found:
        detail = "; ".join(refused)
        if isinstance(change, ChangeType):
            return Retired(f"{change} does not fit the view: {detail}", tuple(refused), stops=True)
        return Retired(f"{change}, and nothing can stand for it: {detail}", tuple(refused))
    best, chosen = min(found, key=lambda pair: pair[1].quality.rank)
    worse = [f"{c.text}: {s.quality}" for c, s in found if c is not best]
    return replace(chosen, others=(*worse, *refused))


def _carried_out(
    view: EvolvingView, change: SchemaChange, candidate: Candidate, catalog: Catalog
) -> Synchronized:
    require_possible(candidate)
    definition, mapping = rewritten(view, candidate.edits)
    extent = mapping.extent.then(candidate.extent)
    # A condition less makes other rows, however equal the relations are.
    trusted = candidate.trusted and extent is Extent.EQUAL
    mapping = replace(mapping, extent=extent, trusted=trusted)
    wanted = view.preferences.extent
    if not wanted.accepts(mapping.extent):
        raise Refused(f"the extent would be {mapping.extent.value}, and must be {wanted.value}")
    definition = _meaningful(definition, catalog)
    quality = _quality(view, definition, mapping)
    return Synchronized(definition, mapping, f"{change}: {candidate.text} ({quality})", quality)


def _meaningful(definition: ViewDefinition, catalog: Catalog) -> ViewDefinition:
    """`fitted`; raises Refused where the view has no meaning any more."""
    try:
        return fitted(definition, catalog)
    except UsageError as error:
        raise Refused(f"{error.message}: {error.detail}") from error


def _quality(view: EvolvingView, definition: ViewDefinition, mapping: EvolutionMapping) -> Quality:
    return Quality(
        len(definition.schema),
        len(view.definition.schema),
        mapping.extent,
        sum(len(term.occurrences) for term in definition.all_terms),
        len(definition.sources),
    )


# -- what follows from it -------------------------------------------------------------------------


def refreshed(definition: ViewDefinition, catalog: Catalog) -> ViewDefinition:
    """The view over its relations as the catalog has them: columns, types and keys; steps too."""
    of_steps: dict[RelationName, Schema] = {}

    def occurrence(old: Occurrence) -> Occurrence:
        if old.name in of_steps:
            return replace(old, schema=of_steps[old.name])
        known = relation_in(catalog, old.name)
        return old if known is None else replace(old, schema=known.schema, key=known.key)

    def terms(old: tuple[Term, ...]) -> tuple[Term, ...]:
        return _alike(
            tuple(replace(t, occurrences=tuple(map(occurrence, t.occurrences))) for t in old)
        )

    steps: list[Step] = []
    for step in definition.steps:
        steps.append(replace(step, terms=terms(step.terms)))
        of_steps[step.name] = steps[-1].schema
    return replace(definition, steps=tuple(steps), terms=terms(definition.terms))


def fitted(definition: ViewDefinition, catalog: Catalog) -> ViewDefinition:
    """`refreshed`; raises UsageError when an expression means nothing over the types there are now."""
    fresh = refreshed(definition, catalog)
    for term in fresh.all_terms:
        for expression in term.computed:
            type_of(expression, term.joined_schema)
        if term.grouping is not None:
            type_of(term.grouping.having, term.grouped_schema)
    return fresh


def _alike(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a UNION ALL with types common to all: one of them may have got another one.

    A bare NULL, such as an outer join shows where there is no partner, has the type of the others.
    """
    types = []
    for outputs in zip(*(zip(t.outputs, t.schema, strict=True) for t in terms), strict=True):
        of_all = [field.type for _, field in outputs]
        of_values = [field.type for output, field in outputs if not _is_null(output)]
        types.append(reduce(common_type, of_values or of_all))
    return tuple(_conformed(term, types) for term in terms)


def _is_null(output: Output) -> bool:
    return isinstance(output.expression, Literal) and output.expression.value is None


def _conformed(term: Term, types: list[Type]) -> Term:
    def conformed(output: Output, found: Type, wanted: Type) -> Output:
        if found == wanted:
            return output
        null = Literal(None, wanted) if _is_null(output) else None
        return Output(output.name, null or Cast(output.expression, wanted))

    outputs = tuple(
        conformed(o, field.type, wanted)
        for o, field, wanted in zip(term.outputs, term.schema, types, strict=True)
    )
    return replace(term, outputs=outputs)


def preferences_after(preferences: Preferences, mapping: EvolutionMapping) -> Preferences:
    """The same wishes where columns have moved."""
    moved = {
        f"{m.before.alias}.{m.before.name}": f"{m.after.alias}.{m.after.name}"
        for m in mapping.attributes
        if m.after is not None
    }
    return preferences.renamed(moved)
