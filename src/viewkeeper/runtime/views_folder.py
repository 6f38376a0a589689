"""The views of a project, read from its folder and resolved against what the sources really have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import indent

from viewkeeper.errors import UsageError
from viewkeeper.runtime.view import View
from viewkeeper.sources.interface import Source
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName
from viewkeeper.views.parser import parse_with_references


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
    files = sorted(folder.glob("*.sql"))
    if not files:
        raise UsageError(
            "no-views",
            f"there are no views in {folder}",
            hint="write a SELECT into a file NAME.sql there",
        )
    texts = {}
    for file in files:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", file.stem):
            raise UsageError(
                "bad-view-name",
                f"a view can't be named {file.stem}",
                hint="letters, digits and underscores: the name stands in SQL",
            )
        texts[file.stem] = file.read_text(encoding="utf-8")
    return texts


def parsed_views(texts: Mapping[str, str], catalog: Catalog) -> dict[str, View]:
    """The views that some texts define; raises UsageError with the place in the text.

    A view may read others by name. Their texts are then part of its own, as comments: when one of them
    changes, it changes too.
    """
    views = {}
    for name, text in texts.items():
        definition, read = parse_with_references(name, text, catalog, texts)
        views[name] = View(definition, text + "".join(_remembered(o, texts[o]) for o in read))
    return views


def _remembered(name: str, text: str) -> str:
    return f"\n-- reads the view {name}:\n" + indent(text.rstrip(), "--   ", lambda line: True)


def sources_used(views: Iterable[View]) -> tuple[str, ...]:
    """The sources that some views read, once, in order of appearance."""
    return tuple(dict.fromkeys(s for view in views for s in view.definition.sources))
