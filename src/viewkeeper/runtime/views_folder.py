"""The views of a project, read from its folder and resolved against what the sources really have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import indent

from viewkeeper.errors import UsageError
from viewkeeper.evolution.synchronization import fitted
from viewkeeper.runtime.view import READS, View
from viewkeeper.runtime.view_files import written_views
from viewkeeper.sources.interface import Source
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.parsing.parser import parse_with_references
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


def view_texts(folder: Path) -> dict[str, str]:
    """The texts in a project's folder of views, by view; raises UsageError."""
    texts = written_views(folder)
    if not texts:
        raise UsageError(
            "no-views",
            f"there are no views in {folder}",
            hint="write a SELECT into a file NAME.sql there",
        )
    return texts


def parsed_views(texts: Mapping[str, str], catalog: Catalog) -> dict[str, View]:
    """The views that some texts define; raises UsageError with the place in the text.

    A view may read others by name. Their texts are then part of its own, as comments: when one of them
    changes, it changes too.
    """
    return {name: parsed_view(name, texts, catalog) for name in texts}


def parsed_view(name: str, texts: Mapping[str, str], catalog: Catalog) -> View:
    """One of the views that some texts define."""
    definition, read = parse_with_references(name, texts[name], catalog, texts)
    return View(definition, texts[name] + "".join(_remembered(o, texts[o]) for o in read))


def parsed_or_stored(
    texts: Mapping[str, str],
    catalog: Catalog,
    stored: Mapping[str, ViewState],
    anew: Collection[str] = (),
) -> dict[str, View]:
    """The views of a project that are to be kept.

    One that the warehouse has, from the same text, is as it became: the text that it evolved to, over
    the relations as they were then; what happened to them since, its sources will tell. One that came
    to its end with a schema change is left out until its user writes it anew.

    Those that are to be filled ``anew`` are over the relations as they are now: nobody will tell what
    happened to them in between.
    """
    views: dict[str, View] = {}
    fresh: list[str] = []
    for name, text in texts.items():
        state = stored.get(name)
        if state is None or not _is_from(state.definition, text):
            fresh.append(name)
        elif not state.definition.is_retired:
            definition = state.definition
            if name in anew:
                definition = replace(definition, relations=None)
            views[name] = _as_stored(name, definition, catalog, texts)
    views |= {name: parsed_view(name, texts, catalog) for name in fresh}
    return {name: views[name] for name in texts if name in views}


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
        hint=f"write the names that its sources have now into views/{name}.sql: it is filled anew",
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
