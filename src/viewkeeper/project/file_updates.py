"""Brings the files of evolved views up to date: the same query, by the names that its sources have now.

A view that follows its sources leaves its file behind. Where only names have changed, they are replaced
in the user's own text, and everything else stays as it is; else the query is written as the view has
become, below the user's own comments. Either way the new text is read again, and must say exactly what the
view is: what can't be said so is left alone, by name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from viewkeeper.engine.schema_changes import EVOLUTION_HEADERS
from viewkeeper.engine.view import View
from viewkeeper.errors import UsageError
from viewkeeper.evolution.lineage import Lineage, Lineages
from viewkeeper.project.views_folder import said
from viewkeeper.sql.parser import parse_with_references
from viewkeeper.views.catalog import Catalog
from viewkeeper.views.definition import ViewDefinition
from viewkeeper.views.printing import identifier, view_sql

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper

_HEADER = re.compile(r"\s*--\s*([A-Za-z][\w-]*)\s*:")


@dataclass(frozen=True)
class FileUpdate:
    """A view's file, and what is to stand in it."""

    view: str
    file: Path
    text: str
    diff: str


def updated_files(keeper: Keeper) -> tuple[list[FileUpdate], dict[str, UsageError]]:
    """What to write into the files of a project, and the views whose file can't be written."""
    written, folder = keeper.written, keeper.config.views_folder
    views = {n: v for n, v in keeper.read_views.items() if v.origin}
    new, left = updated_texts(views, written.texts, keeper.known_catalog)
    updates = []
    for name, text in new.items():
        file = folder / f"{name}.sql"
        if not file.exists():
            left[name] = _in_python(views[name])
            continue
        lines = written.texts[name].splitlines(keepends=True), text.splitlines(keepends=True)
        paths = f"a/views/{file.name}", f"b/views/{file.name}"
        updates.append(FileUpdate(name, file, text, "".join(difflib.unified_diff(*lines, *paths))))
    return updates, left


def _in_python(view: View) -> UsageError:
    return UsageError(
        "view-not-writable",
        f"the view {view.name} is declared in Python, which is not written here",
        detail=view.text,
        hint="the view is kept on as it is; write the names of now by hand when you change it",
    )


def updated_texts(
    views: Mapping[str, View], texts: Mapping[str, str], catalog: Catalog
) -> tuple[dict[str, str], dict[str, UsageError]]:
    """New texts for the files that lag behind their views, and those that can't be written.

    ``catalog`` has the relations as the views know them.
    """
    named = {name: _renamed(texts[name], view) for name, view in views.items() if name in texts}
    wanted = {**texts, **named}
    new: dict[str, str] = {}
    left: dict[str, UsageError] = {}
    for name, view in views.items():
        for text in (wanted[name], _rewritten(texts[name], view.definition)):
            if _says(name, text, wanted, catalog) == said(view.definition):
                if text != texts[name]:
                    new[name] = text
                break
        else:
            left[name] = _not_writable(view)
    return new, left


def _says(name: str, text: str, texts: Mapping[str, str], catalog: Catalog) -> object:
    try:
        return said(parse_with_references(name, text, catalog, {**texts, name: text})[0])
    except UsageError:
        return None


def _not_writable(view: View) -> UsageError:
    return UsageError(
        "view-not-writable",
        f"views/{view.name}.sql can't be brought up to date: its query can't be written as it has become",
        detail=view.text,
        hint="the view is kept on as it is; write the names of now by hand when you change it",
    )


# -- the same text under other names ------------------------------------------------------------------


@dataclass(frozen=True)
class _Splice:
    start: int
    end: int
    text: str


def _renamed(text: str, view: View) -> str:
    """The text with names replaced where their relation has another one now; perhaps not all of them."""
    lineage = tuple(each for each in view.lineage if each.now is not None)
    try:
        parsed = sqlglot.parse_one(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return text
    splices = {*_tables(parsed, lineage, text), *_columns(parsed, lineage)}
    for splice in sorted(splices, key=lambda each: each.start, reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return _with_headers(text, view.definition)


def _tables(parsed: exp.Expr, known: Lineages, text: str) -> Iterator[_Splice]:
    for table in parsed.find_all(exp.Table):
        lineage = _lineage_of(table, known)
        if lineage is None or lineage.now is None or lineage.now == lineage.before.name:
            continue
        places = [part.meta for part in table.parts if "start" in part.meta]
        if not places:
            continue
        path = ".".join(
            identifier(p) for p in (lineage.now.source, *lineage.now.relation.split("."))
        )
        alias = "" if table.alias else f" AS {table.name}"
        start, end = min(p["start"] for p in places), max(p["end"] for p in places) + 1
        if text[start:end]:
            yield _Splice(start, end, path + alias)


def _lineage_of(table: exp.Table, known: Lineages) -> Lineage | None:
    path = ".".join(part.name for part in table.parts).casefold()
    return next((each for each in known if str(each.before.name).casefold() == path), None)


def _columns(parsed: exp.Expr, known: Lineages) -> Iterator[_Splice]:
    for column in parsed.find_all(exp.Column):
        place = column.this.meta if isinstance(column.this, exp.Identifier) else {}
        now = _name_now(column, known)
        if now is None or "start" not in place:
            continue
        shown = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
        alias = f" AS {identifier(column.name)}" if shown else ""
        yield _Splice(place["start"], place["end"] + 1, identifier(now) + alias)


def _name_now(column: exp.Column, known: Lineages) -> str | None:
    """Another name that a column has now, by the tables of the nearest SELECT that has it."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for table in _own_tables(select):
            if column.table and column.table.casefold() != table.alias_or_name.casefold():
                continue
            lineage = _lineage_of(table, known)
            for then, now in lineage.columns if lineage is not None else ():
                if then.casefold() == column.name.casefold():
                    return now if now != then else None
        select = select.find_ancestor(exp.Select)
    return None


def _own_tables(select: exp.Select) -> Iterator[exp.Table]:
    clauses = [select.args.get("from_") or select.args.get("from"), *select.args.get("joins", ())]
    for clause in clauses:
        if clause is not None and isinstance(clause.this, exp.Table):
            yield clause.this


# -- the query as it has become -----------------------------------------------------------------------


def _rewritten(text: str, definition: ViewDefinition) -> str:
    """The user's own comments, and below them the query as the view has become."""
    comments = []
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("--"):
            break
        comments.append(line)
    printed = view_sql(replace(definition, settings=())).splitlines()
    query = [line for line in printed if not line.startswith("--")]
    kept = "\n".join(comments).strip("\n")
    return _with_headers(f"{kept}\n" if kept else "", definition) + "\n".join(query) + "\n"


def _with_headers(text: str, definition: ViewDefinition) -> str:
    """The text whose headers speak of parts that the view still has, under their names of now."""
    settings = dict(definition.settings)
    lines: list[str] = []
    in_headers = True
    for line in text.splitlines(keepends=True):
        in_headers = in_headers and (not line.strip() or line.lstrip().startswith("--"))
        header = _HEADER.match(line) if in_headers else None
        word = header[1].lower() if header is not None else ""
        if word not in EVOLUTION_HEADERS or word in ("extent", "evolve"):
            lines.append(line)
        elif word in settings:
            lines.append(f"-- {word}: {settings[word]}\n")
    return "".join(lines)
