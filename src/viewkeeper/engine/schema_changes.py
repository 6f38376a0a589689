"""Schema changes live: what one that a feed delivered does to a group's views, and to rows on their way.

`evolution` decides; here its words are put together for one statement at a source, which may be several
changes at once, and the rows that arrived before it are given the shape that they have after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra.evaluation import compiled
from viewkeeper.algebra.expressions import Cast, Column, Expression, Literal, columns_of
from viewkeeper.algebra.types import Field, Row, Schema
from viewkeeper.engine.view import View, choice_for_evolved
from viewkeeper.errors import UsageError
from viewkeeper.evolution import changes as schema_changes
from viewkeeper.evolution.changes import catalog_after, relation_in
from viewkeeper.evolution.differences import differences
from viewkeeper.evolution.effects import Decision, Effect, Kind, planned
from viewkeeper.evolution.knowledge import Knowledge
from viewkeeper.evolution.lineage import followed
from viewkeeper.evolution.mapping import EvolutionMapping
from viewkeeper.evolution.preferences import Parts
from viewkeeper.evolution.rewriting import EvolvingView
from viewkeeper.sources.interface import (
    RelationChange,
    RelationSchema,
    SchemaChange,
    SourceTransaction,
    ToldColumns,
)
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.kept_relations import still_kept
from viewkeeper.views.printing import view_sql

# What a view's headers say of its parts; an evolved view says all of it, in its own words.
EVOLUTION_HEADERS = ("dispensable", "irreplaceable", "extent", "evolve", "keep")


@dataclass(frozen=True)
class Evolution:
    """What is known of the sources at one place in their order, and what can replace what."""

    catalog: Catalog = Catalog()  # noqa: RUF009  (immutable)
    knowledge: Knowledge = Knowledge()  # noqa: RUF009  (immutable)
    # Which entries of the knowledge file it is from.
    said: tuple[str, ...] = ()

    def watched(self, views: Mapping[str, View]) -> tuple[RelationName, ...]:
        """Relations that may come to stand for some that the views read, or for what stands for those.

        Their changes are followed from the start: then they can be read as of any state since. A chain is followed to
        its end, because two drops may be taken before a feed could bring what the second one needs.
        """
        used = {name for view in views.values() for name in view.definition.relations}
        known = {relation.name for relation in self.catalog.relations}
        pairs = [(r.relation, r.by) for r in self.knowledge.replacements]
        pairs += [p for j in self.knowledge.joins for p in ((j.left, j.right), (j.right, j.left))]
        found = set(used)
        while more := {by for one, by in pairs if one in found} - found:
            found |= more
        return tuple(sorted((found - used) & known))


@dataclass(frozen=True)
class Foreseen:
    """What a statement at a source leads to: the changes it is made of, and each view's way.

    ``known`` is what was known before it, ``evolution`` what is known after it.
    """

    reported: SchemaChange
    steps: tuple[schema_changes.SchemaChange, ...]
    effects: tuple[Effect, ...]
    known: Evolution
    evolution: Evolution

    @property
    def must_wait(self) -> tuple[Effect, ...]:
        """Effects that somebody has to decide about, or that a policy forbids."""
        return tuple(e for e in self.effects if e.decision is not Decision.PROCEED)

    @property
    def rewrites(self) -> bool:
        """Whether rows of the relation may have become others without a change of theirs in the feed:
        what arrived of them before has no form after it that we could tell."""
        return any(
            isinstance(step, schema_changes.Rewrite)
            or (isinstance(step, schema_changes.ChangeType) and not step.is_widening)
            for step in self.steps
        )

    @property
    def ended(self) -> Mapping[str, Effect]:
        """The views that are not kept from here on, each with its last effect."""
        return {e.view: e for e in self.effects if e.after is None}

    def views(self, before: Mapping[str, View]) -> dict[str, View]:
        """The views that go on, as they are after it."""
        after = {name: self.with_lineage(view) for name, view in before.items()}
        for effect in self.effects:
            view = after.get(effect.view)
            if view is None:
                continue
            if effect.after is None:
                del after[effect.view]
            elif effect.kind is not Kind.UNTOUCHED or effect.after.definition != view.definition:
                after[effect.view] = self._evolved(view, effect, effect.after)
        return after

    def with_lineage(self, view: View) -> View:
        """The view with what became of the names in its files."""
        lineage, catalog = view.lineage, self.known.catalog
        named = (*view.definition.relations, *self.known.knowledge.relations)
        for step in self.steps:
            lineage = followed(lineage, step, named, catalog, self.known.said)
            catalog = catalog_after(catalog, step)
        return view if lineage == view.lineage else replace(view, lineage=lineage)

    def _evolved(self, view: View, effect: Effect, becoming: EvolvingView) -> View:
        # Other types or rows under the very same words: its user's text still says what it is.
        same = effect.kind in (Kind.UNTOUCHED, Kind.OFFERED)
        same = same or view_sql(view.definition) == view_sql(becoming.definition)
        definition = becoming.definition if same else _with_headers(becoming)
        text = view.text if same else view_sql(definition)
        story = {
            "source": self.reported.source,
            "relation": self.reported.relation,
            "statement": self.reported.statement,
            "effect": effect.kind.value,
            "reason": effect.reason,
            "mapping": [] if effect.mapping is None else list(effect.mapping.lines()),
            "quality": None if effect.quality is None else effect.quality.as_dict(),
            "others": list(effect.others),
            "method": effect.method.value,
            "method_reason": effect.method_reason,
            "before": view.text,
        }
        return replace(
            view,
            definition=definition,
            preferences=becoming.preferences,
            text=text,
            origin="" if text == view.written else view.written,
            evolved=story,
        )

    def mappings(self) -> dict[str, EvolutionMapping]:
        """For each view whose rows may differ, what happened to it."""
        found: dict[str, EvolutionMapping] = {}
        for effect in self.effects:
            if effect.kind in (Kind.SYNCHRONIZED, Kind.REREAD) and effect.mapping is not None:
                known = found.get(effect.view)
                found[effect.view] = (
                    effect.mapping if known is None else known.merged(effect.mapping)
                )
        return found


def foreseen(reported: SchemaChange, views: Mapping[str, View], known: Evolution) -> Foreseen:
    """What becomes of the views when a source did this."""
    shapes = _shapes(reported, known.catalog)
    steps = differences(*shapes, rewrites=reported.rewrites)
    evolving = {name: EvolvingView(v.definition, v.preferences) for name, v in views.items()}
    effects: list[Effect] = []
    for _, found in planned(steps, evolving, known.knowledge, known.catalog):
        effects += found
    catalog, knowledge = known.catalog, known.knowledge
    for step in steps:
        catalog, knowledge = catalog_after(catalog, step), knowledge.after(step)
    effects += _not_keepable(effects)
    after = replace(known, catalog=catalog, knowledge=knowledge)
    return Foreseen(reported, steps, tuple(effects), known, after)


def does_not_fit(view: str, reason: str) -> UsageError:
    """Why a view has stopped, for the run and for its readers."""
    return UsageError(
        "view-does-not-fit",
        f"view {view} has stopped: its text does not fit its sources any more",
        detail=reason,
        hint=f"write views/{view}.sql so that it fits, or undo the change; then viewkeeper rebuild {view}",
    )


def _not_keepable(effects: Iterable[Effect]) -> Iterator[Effect]:
    """The end of views that would go on, but that no protocol can keep as they are declared."""
    for last in {effect.view: effect for effect in effects}.values():
        if last.after is None or last.kind is Kind.UNTOUCHED:
            continue
        try:
            choice_for_evolved(_with_headers(last.after))
        except UsageError as error:
            reason = f"{last.reason}; but {error.message}: {error.detail}"
            yield replace(last, kind=Kind.STOPPED, after=None, reason=reason, mapping=None)


def carried(view: View, steps: Iterable[schema_changes.SchemaChange], known: Evolution) -> View:
    """A view over relations of the past, once they have become what they are now.

    ``known`` is of that past, and so are the view's preferences. Raises UsageError when it can't be kept.
    """
    becoming = EvolvingView(view.definition, view.preferences)
    planning = planned(steps, {view.name: becoming}, known.knowledge, known.catalog)
    for _, effects in planning:
        for effect in effects:
            if effect.after is None:
                raise UsageError(
                    "view-outdated",
                    f"view {view.name} names what its sources have no more",
                    detail=effect.reason,
                    hint=f"write views/{view.name}.sql with what there is now",
                )
            becoming = effect.after
    if view_sql(becoming.definition) == view_sql(view.definition):
        return replace(view, definition=becoming.definition)
    definition = _with_headers(becoming)
    return replace(
        view,
        definition=definition,
        preferences=becoming.preferences,
        text=view_sql(definition),
        origin=view.text,
    )


def _with_headers(view: EvolvingView) -> ViewDefinition:
    """The definition with headers that say what the view says of its parts now."""
    definition, wanted = view.definition, view.preferences
    parts = {"dispensable": wanted.dispensable, "irreplaceable": wanted.irreplaceable}
    aliases = {o.alias for term in definition.all_terms for o in term.occurrences}
    columns = {c for t in definition.all_terms for p in t.predicates for c in columns_of(p)}
    said = {
        word: Parts(
            some.outputs & set(definition.schema.names),
            some.relations & aliases,
            some.conditions & columns,
        ).as_list()
        for word, some in parts.items()
    } | {"keep": still_kept(definition)}
    settings = {name: value for name, value in definition.settings if name not in said}
    settings |= {word: ", ".join(items) for word, items in said.items() if items}
    settings |= {"extent": wanted.extent.value, "evolve": wanted.policy.value}
    return replace(definition, settings=tuple(settings.items()))


def _shapes(
    reported: SchemaChange, catalog: Catalog
) -> tuple[CatalogRelation | None, CatalogRelation | None, Mapping[str, str]]:
    """The relation before and after, and the columns that were renamed."""
    ours = relation_in(catalog, RelationName(reported.source, reported.relation))
    if reported.told is not None and ours is not None:
        return _as_told(ours, reported, reported.told)
    before, after = _relations(reported, catalog)
    before, renamed = _by_our_names(
        before, after, reported.renamed_columns, catalog, corrects=reported.corrects
    )
    return before, after, renamed


def _as_told(
    ours: CatalogRelation, reported: SchemaChange, told: ToldColumns
) -> tuple[CatalogRelation, CatalogRelation, Mapping[str, str]]:
    """What the statement made of the relation as we know it, and the columns that it renamed.

    The source's own descriptions may be of a later time: of them we take the types of new columns alone.
    """
    pairs = [(f, told.name_after(f.name)) for f in ours.schema]
    kept = [Field(name, field.type) for field, name in pairs if name is not None]
    described = reported.after.schema if reported.after is not None else Schema(())
    names = {field.name.casefold() for field in kept}
    wanted = {name.casefold() for name in told.added} - names
    kept += [field for field in described if field.name.casefold() in wanted]
    # Rows come in the table's own order, into which a new column may have been put anywhere.
    places = {name: place for place, name in enumerate(described.names)}
    kept.sort(key=lambda field: places.get(field.name, len(places)))
    relation = reported.relation if reported.renamed_to is None else reported.renamed_to
    key = tuple(name for name in map(told.name_after, ours.key) if name is not None)
    after = CatalogRelation(RelationName(reported.source, relation), Schema(tuple(kept)), key)
    return ours, after, {f.name: name for f, name in pairs if name is not None and name != f.name}


def _relations(
    reported: SchemaChange, catalog: Catalog
) -> tuple[CatalogRelation | None, CatalogRelation | None]:
    before = _in_catalog(reported.source, reported.relation, reported.before)
    if before is None and reported.after is None:
        # It was gone already when the feed was opened, which can't tell what it was: we can.
        before = relation_in(catalog, RelationName(reported.source, reported.relation))
    if reported.renamed_to is not None and before is not None:
        name = RelationName(reported.source, reported.renamed_to)
        return before, replace(before, name=name)
    return before, _in_catalog(reported.source, reported.relation, reported.after)


def _by_our_names(
    before: CatalogRelation | None,
    after: CatalogRelation | None,
    renamed: Mapping[str, str],
    catalog: Catalog,
    *,
    corrects: bool,
) -> tuple[CatalogRelation | None, Mapping[str, str]]:
    """What the source says was before, by the names that we know its columns by.

    SQLite keeps no record of a column that was renamed twice: it knows the place, and the last name.
    MariaDB, of a change during which no feed read along, knows only what there is now: what was before it
    is then what we know.
    """
    known = None if before is None else relation_in(catalog, before.name)
    if before is None or known is None or known.schema == before.schema:
        return before, renamed
    if after is not None and after.schema == known.schema:
        return known, {}  # a run that was killed after it took the change hears of it once more
    pairs = list(zip(known.schema, before.schema, strict=False))
    if len(known.schema) != len(before.schema) or any(o.type != t.type for o, t in pairs):
        is_untold = after is not None and after.schema == before.schema
        return (known, {}) if is_untold or corrects else (before, renamed)
    chained = {ours.name: renamed.get(theirs.name, theirs.name) for ours, theirs in pairs}
    return known, {old: new for old, new in chained.items() if old != new}


def _in_catalog(
    source: str, relation: str, described: RelationSchema | None
) -> CatalogRelation | None:
    if described is None:
        return None
    return CatalogRelation(RelationName(source, relation), described.schema, described.key)


def changes_rows(change: SchemaChange) -> bool:
    """Whether rows may be others after it without a change of theirs in the feed."""
    if change.before is None or change.after is None:
        return change.rewrites
    before, after = change.before.schema, change.after.schema
    names = {name: change.renamed_columns.get(name, name) for name in before.names}
    return change.rewrites or any(
        new in after and before.type_of(old) != after.type_of(new) for old, new in names.items()
    )


# -- rows that arrived before the change --------------------------------------------------------------


def as_after(origin: SourceTransaction, change: SchemaChange) -> SourceTransaction:
    """The transaction as the relation's rows look after the change; unchanged where it is not in it."""
    if origin.source != change.source:
        return origin
    if all(each.relation != change.relation for each in origin.changes):
        return origin
    return origin._replace(changes=tuple(_reshaped(origin.changes, change)))


def _reshaped(
    changes: tuple[RelationChange, ...], change: SchemaChange
) -> Iterator[RelationChange]:
    for each in changes:
        if each.relation != change.relation:
            yield each
        elif change.renamed_to is not None:
            yield each._replace(relation=change.renamed_to)
        elif change.after is not None and change.before is not None:
            shape = _Shape(change.before.schema, change.after.schema, change.renamed_columns)
            deleted, inserted = map(shape.rows, (each.deleted, each.inserted))
            yield each._replace(deleted=deleted, inserted=inserted)
        # A relation that is gone has no rows that anybody could still want.


class _Shape:
    """From rows of one schema to rows of the next: columns by name, others NULL."""

    def __init__(self, before: Schema, after: Schema, renamed: Mapping[str, str]) -> None:
        old_names = {new: old for old, new in renamed.items()}
        self._columns = [
            compiled(self._expression(field, before, old_names), before) for field in after
        ]

    @staticmethod
    def _expression(field: Any, before: Schema, old_names: Mapping[str, str]) -> Expression:
        old = old_names.get(field.name, field.name)
        # A name that another column left behind means a new column.
        if old not in before or (old == field.name and old in old_names.values()):
            return Literal(None, field.type)
        same = before.type_of(old) == field.type
        return Column(old) if same else Cast(Column(old), field.type)

    def rows(self, rows: Any) -> tuple[Row, ...]:
        return tuple(tuple(column(row) for column in self._columns) for row in rows)
