"""The views of a project, read from its folder and resolved against what the sources really have."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent
from typing import Any

import sqlglot

from viewkeeper.algebra.types import Schema
from viewkeeper.engine.schema_changes import EVOLUTION_HEADERS, Evolution, carried
from viewkeeper.engine.view import READS, View, stored_lineage
from viewkeeper.errors import UsageError
from viewkeeper.evolution.knowledge_file import read_knowledge, view_tables
from viewkeeper.evolution.lineage import Lineages, catalogs_then, inherited, steps_since
from viewkeeper.evolution.preferences import preferences_of
from viewkeeper.evolution.sameness import canonical
from viewkeeper.evolution.synchronization import fitted
from viewkeeper.project.view_files import WrittenViews, written_views
from viewkeeper.sources.interface import Source
from viewkeeper.sql.parser import parse_with_references
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.printing import view_sql
from viewkeeper.views.storing import definition_from_text
from viewkeeper.warehouse.columns import schema_from_json
from viewkeeper.warehouse.entries import Definition, ViewState


def catalog_of(sources: Mapping[str, Source]) -> Catalog:
    """Every relation that the sources let us read, as it is now."""
    return Catalog(
        tuple(
            CatalogRelation(RelationName(name, relation), described.schema, described.key)
            for name, source in sources.items()
            for relation, described in source.schemas().items()
        )
    )


def view_texts(folder: Path) -> WrittenViews:
    """The views in a project's folder of views; raises UsageError when it has none."""
    written = written_views(folder)
    if not written.texts and not written.bad:
        raise UsageError(
            "no-views",
            f"there are no views in {folder}",
            hint="write a SELECT into a file NAME.sql there",
        )
    return written


def parsed_views(texts: Mapping[str, str], catalog: Catalog) -> dict[str, View]:
    """The views that some texts define; raises UsageError with the place in the text.

    A view may read others by name. Their texts are then part of this one, as comments: when one of them
    changes, it changes too.
    """
    return {name: parsed_view(name, texts, catalog) for name in texts}


def parsed_view(name: str, texts: Mapping[str, str], catalog: Catalog) -> View:
    """One of the views that some texts define."""
    definition, read = parse_with_references(name, texts[name], catalog, texts)
    return View(definition, texts[name] + "".join(_remembered(o, texts[o]) for o in read))


@dataclass(frozen=True)
class ReadViews:
    """The views of a project as they are to be kept; ``bad`` ones are named by no right text.

    ``ended``: those that came to their end with a schema change, as the warehouse remembers them.
    """

    views: Mapping[str, View] = field(default_factory=dict)
    bad: Mapping[str, UsageError] = field(default_factory=dict)
    ended: Mapping[str, Definition] = field(default_factory=dict)


def read_views(
    written: WrittenViews,
    catalog: Catalog,
    stored: Mapping[str, ViewState],
    refilled: Collection[str] = (),
    knowledge: Mapping[str, Any] | None = None,
) -> ReadViews:
    """The views of a project, each read by itself: what is wrong with one is wrong with no other.

    One that the warehouse has, from the same text, is as it became: the text that it evolved to, over
    the relations as they were then; what happened to them since, its sources will tell. One that came
    to its end with a schema change is left out until it is rebuilt, or its user rewrites it.

    Those that are to be ``refilled`` are over the relations as they are now: no feed will say what
    happened to them in between.
    """
    views: dict[str, View] = {}
    bad = dict(written.bad)
    ended: dict[str, Definition] = {}
    reader = _Reader(written.texts, catalog, knowledge or {})
    for name, text in written.texts.items():
        state = stored.get(name)
        try:
            if state is None:
                view = parsed_view(name, written.texts, catalog)
            elif not _is_from(state.definition, text):
                view = reader.written_again(name, state.definition)
            elif name in refilled:
                view = reader.refilled_view(name, state.definition)
            elif state.definition.has_ended:
                ended[name] = state.definition
                continue
            else:
                view = reader.as_stored(name, state.definition, catalog)
            views[name] = reader.with_preferences(view)
        except UsageError as error:
            bad[name] = error
    return ReadViews(views, bad, ended)


@dataclass(frozen=True)
class _Reader:
    """Reads views of which the warehouse knows an earlier form."""

    texts: Mapping[str, str]
    catalog: Catalog
    knowledge: Mapping[str, Any]

    def with_preferences(self, view: View) -> View:
        """With what is said of its parts: one that has evolved carries all of it in its headers."""
        tables = None if view.origin else view_tables(self.knowledge).get(view.name)
        return replace(view, preferences=preferences_of(view.definition, tables))

    def as_stored(self, name: str, definition: Definition, catalog: Catalog) -> View:
        """As it became, over the relations as they were, or as the catalog has them now."""
        view = _as_stored(name, definition, catalog, self.texts)
        return replace(view, lineage=stored_lineage(definition))

    def refilled_view(self, name: str, definition: Definition) -> View:
        """As it became, over the relations as they are now; else as its file says."""
        fresh = replace(definition, relations=None)
        if definition.has_ended:
            fresh = replace(fresh, evolved=None)
        try:
            return self.as_stored(name, fresh, self.catalog)
        except UsageError as error:
            with contextlib.suppress(UsageError):
                return self.written_again(name, definition)
            raise error

    def written_again(self, name: str, definition: Definition) -> View:
        """A text that its user has changed. It may still use names that its sources have no more: then
        it is read over the relations as they were, and carried over to what they are now.

        Where only headers and comments are new, it speaks of the relations that it always spoke of,
        also when their names are in use again for others.
        """
        lineage = stored_lineage(definition)
        kept = self._as_kept(name, definition)
        if kept is not None:
            return kept
        before = definition.written.split(READS)[0]
        now: Callable[[], View] = functools.partial(self._now, name, lineage)
        then: list[Callable[[], View]] = [
            functools.partial(self._carried, name, catalog, chosen, lineage)
            for catalog, chosen in catalogs_then(lineage, self.catalog)
        ]
        is_same = _query_of(before) == _query_of(self.texts[name])
        errors: list[UsageError] = []
        for way in (*then, now) if is_same else (now, *then):
            try:
                return way()
            except UsageError as error:
                errors.append(error)
        raise errors[0]

    def _as_kept(self, name: str, definition: Definition) -> View | None:
        """The view that the warehouse has, where the new text says what that has become: nothing is to be
        filled, and what happened since, its sources will tell."""
        if not definition.origin or definition.has_ended:
            return None
        known = {r.name: r for r in (*self.catalog.relations, *stored_relations(definition))}
        try:
            says = self.with_preferences(
                parsed_view(name, self.texts, Catalog(tuple(known.values())))
            )
        except UsageError:
            return None
        kept = self.with_preferences(self.as_stored(name, definition, self.catalog))
        same = said(says.definition) == said(kept.definition)
        if not same or says.preferences != kept.preferences:
            return None
        return replace(kept, lineage=inherited(kept.lineage))

    def _now(self, name: str, lineage: Lineages) -> View:
        view = parsed_view(name, self.texts, self.catalog)
        return replace(view, lineage=inherited(lineage))

    def _carried(self, name: str, then: Catalog, chosen: Lineages, lineage: Lineages) -> View:
        view = self.with_preferences(parsed_view(name, self.texts, then))
        known = Evolution(then, read_knowledge(self.knowledge, then).knowledge)
        own = tuple(replace(each, is_older=False) for each in chosen)
        older = tuple(each for each in lineage if each not in chosen)
        view = carried(view, steps_since(chosen, self.catalog), known)
        return replace(view, lineage=(*own, *inherited(older)))


def said(definition: ViewDefinition) -> tuple[str, Schema]:
    """What a view is, beside what it says of its parts."""
    settings = tuple(s for s in definition.settings if s[0] not in EVOLUTION_HEADERS)
    same = canonical(replace(definition, settings=settings))
    return view_sql(same), definition.schema


def _query_of(text: str) -> str:
    """What a text says beside headers, comments and its form; itself where that is not known."""
    try:
        return sqlglot.parse_one(text, dialect="spark").sql(dialect="spark", comments=False)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return text


def _is_from(definition: Definition, text: str) -> bool:
    """Whether the view was made from that text; views that it reads are remembered behind it."""
    return definition.written == text or definition.written.startswith(f"{text}{READS}")


def _as_stored(
    name: str, definition: Definition, catalog: Catalog, texts: Mapping[str, str]
) -> View:
    if definition.tree:
        tree = definition_from_text(definition.tree)
        if definition.relations is None:
            tree = _over(tree, catalog)
        return View(tree, definition.text, definition.origin, evolved=definition.evolved)
    known = {r.name: r for r in catalog.relations} | {
        r.name: r for r in stored_relations(definition)
    }
    before = Catalog(tuple(known.values()))
    text = definition.text.split(READS)[0]
    try:
        parsed, _ = parse_with_references(name, text, before, texts)
    except UsageError as error:
        if not definition.origin:
            raise
        raise _unreadable(name, str(error)) from None
    return View(parsed, definition.text, definition.origin, evolved=definition.evolved)


def _over(definition: ViewDefinition, catalog: Catalog) -> ViewDefinition:
    """A view over its relations as they are now; raises UsageError where it does not fit them."""
    known = {relation.name for relation in catalog.relations}
    gone = [str(name) for name in definition.relations if name not in known]
    if gone:
        raise _unreadable(definition.name, f"there is no {', '.join(gone)} any more")
    try:
        return fitted(definition, catalog)
    except UsageError as error:
        raise _unreadable(definition.name, str(error)) from None


def _unreadable(name: str, detail: str) -> UsageError:
    return UsageError(
        "evolved-view-unreadable",
        f"view {name}, as it evolved, can't be read over its sources as they are now",
        detail=detail,
        hint=f"write the names that its sources have now into views/{name}.sql: it is refilled",
    )


def stored_relations(definition: Definition) -> tuple[CatalogRelation, ...]:
    """The relations that a view is over, as the warehouse remembers them."""
    return tuple(
        CatalogRelation(
            RelationName(*name.split(".", 1)), schema_from_json(r["columns"]), tuple(r["key"])
        )
        for name, r in (definition.relations or {}).items()
    )


def _remembered(name: str, text: str) -> str:
    return f"{READS}{name}:\n" + indent(text.rstrip(), "--   ", lambda line: True)


def sources_used(views: Iterable[View]) -> tuple[str, ...]:
    """The sources that some views read, once, in order of appearance."""
    return tuple(dict.fromkeys(s for view in views for s in view.definition.sources))
