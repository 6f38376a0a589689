"""Whether every source can be read exactly, how each view is kept, and what the sources' owners must do.

The document of ``viewkeeper check``. Creates nothing unless it may set sources up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.project.config import ProjectConfig, SourceConfig
from viewkeeper.project.keeper import Keeper
from viewkeeper.project.open_project import opened_source
from viewkeeper.project.security import security_of
from viewkeeper.project.settings import storage_of
from viewkeeper.project.view_files import has_views, written_views
from viewkeeper.reports.run_state import kept_as
from viewkeeper.sources.interface import Finding, Source
from viewkeeper.warehouse.ledger import Ledger

Document = dict[str, Any]


def check_document(config: ProjectConfig, *, allow_setup: bool) -> Document:
    """Sources, views, notes and security; raises UsageError for a project without sources."""
    if not config.sources:
        raise UsageError(
            "no-sources",
            "the project has no sources",
            hint="add [sources.NAME] with a url to viewkeeper.toml",
        )
    sources = [_report(config, each, allow_setup) for each in config.sources.values()]
    good = can_be_read(sources)
    with Keeper(config) as keeper:
        # Once the sources can be read, names can be resolved.
        is_looked_at = good and has_views(config.views_folder)
        views = _views(keeper) if is_looked_at else []
        notes = list(_notes(keeper)) if is_looked_at else []
        security = security_of(keeper)
    return {
        "ok": good and all(view["error"] is None for view in views),
        "sources": sources,
        "views": views,
        "notes": notes,
        "security": security,
    }


def can_be_read(sources: Sequence[Document]) -> bool:
    """Whether no source's part of the document has a refusal."""
    return not any(f["severity"] == "refused" for each in sources for f in each["findings"])


def setup_script(config: ProjectConfig, name: str) -> str:
    """What the owner of a source runs there."""
    with opened_source(config.source(name).as_far_as_known()) as source:
        return source.setup_sql(_to_set_up(config, source))


def _views(keeper: Keeper) -> list[Document]:
    """How each view is kept, or why it can't be."""
    found: list[Document] = []
    bad = {**keeper.bad_views, **keeper.stopped_views}
    for name in sorted({*bad, *keeper.read_views}):
        told: Document
        if name in bad:
            told = {"protocol": None, "level": None, "why": [], "warning": None}
            told["error"] = bad[name].as_dict()
        else:
            view = keeper.read_views[name]
            told = kept_as(view) | {"warning": view.shortfall, "error": None}
        found.append({"view": name, **told})
    return found


def _notes(keeper: Keeper) -> Iterator[str]:
    yield from keeper.knowledge.notes
    for name, view in keeper.read_views.items():
        if view.origin:
            yield (
                f"views/{name}.sql lags behind the view, which has followed its sources: "
                "viewkeeper evolve --write brings it up to date"
            )
    for name, definition in keeper.ended_views.items():
        if name in keeper.stopped_views:
            continue
        story = definition.evolved
        yield (
            f"{name} was {story['effect']} ({story['reason']}); its last state stays readable, and "
            f"viewkeeper rebuild {name} brings it back as soon as its text fits its sources"
        )


def _report(config: ProjectConfig, each: SourceConfig, allow_setup: bool) -> Document:
    """What one source's preflight says; a source that can't be reached is a finding too."""
    try:
        with opened_source(each, allow_setup=allow_setup) as source:
            relations = _relations(config, source)
            if allow_setup and _needs_setup(source, relations):
                source.setup(relations)
            found = source.preflight(relations)
            kind = source.kind
    except SourceError as error:
        kind, relations = "", []
        found = [_as_finding(error)]
    return {
        "source": each.name,
        "kind": kind,
        "relations": list(relations),
        "findings": [vars(finding) for finding in found],
    }


def _needs_setup(source: Source, relations: Sequence[str]) -> bool:
    return any(finding.severity != "ok" for finding in source.preflight(relations))


def _as_finding(error: SourceError) -> Finding:
    message = f"{error.message}: {error.detail}" if error.detail else error.message
    return Finding(error.code, "refused", message, error.hint)


def _relations(config: ProjectConfig, source: Source) -> list[str]:
    """The relations of the source that the project reads; all of them while it names none.

    A table that is not there is its view's trouble, and no fault of the source.
    """
    there = source.schemas()
    used = relations_of_views(config.views_folder).get(source.name, set())
    used |= _followed(config, source.name) | _named_as_spare(config, source.name)
    return sorted(used & there.keys()) if used else sorted(there)


def _to_set_up(config: ProjectConfig, source: Source) -> list[str]:
    """What the script of a source's owner is about. Its reader may not be allowed to look at the source:
    then views' names are taken as they are written."""
    used = relations_of_views(config.views_folder).get(source.name)
    try:
        return _relations(config, source) if not used else sorted(used | _spare(config, source))
    except SourceError:
        return sorted(used or ())


def _spare(config: ProjectConfig, source: Source) -> set[str]:
    """The source's relations that may come to stand for others, as far as they are there."""
    return _named_as_spare(config, source.name) & source.schemas().keys()


def _named_as_spare(config: ProjectConfig, source: str) -> set[str]:
    named: set[str] = set()
    knowledge = config.knowledge
    for entry in (*knowledge.get("replacements", ()), *knowledge.get("joins", ())):
        for word in ("by", "left", "right"):
            owner, _, relation = str(entry.get(word, "")).partition(".")
            named |= {relation} if owner == source else set()
    return named


def _followed(config: ProjectConfig, source: str) -> set[str]:
    """The source's relations as views have followed them: their files may still name what was."""
    storage = storage_of(config)
    states = Ledger.open(storage).latest().shown_views if Ledger.exists(storage) else {}
    kept = (s.definition for s in states.values() if not s.definition.has_ended)
    names = (name.split(".", 1) for definition in kept for name in definition.relations or ())
    return {relation for owner, relation in names if owner == source}


def relations_of_views(folder: Path) -> dict[str, set[str]]:
    """By source, every relation that a view's text names. Whether the views are right is not asked."""
    used: dict[str, set[str]] = {}
    for text in written_views(folder).texts.values():
        for source, relation in relations_named(text):
            used.setdefault(source, set()).add(relation)
    return used


def relations_named(text: str) -> list[tuple[str, str]]:
    """The relations that a view's text names, each with its source; none where the text is no SQL."""
    try:
        statements = sqlglot.parse(text, read="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return []  # it names nothing that can be relied on; reading the views says what is wrong
    tables = (table for each in filter(None, statements) for table in each.find_all(exp.Table))
    names = ([part.name for part in table.parts] for table in tables)
    return list(dict.fromkeys((n[0], ".".join(n[1:])) for n in names if len(n) > 1))
