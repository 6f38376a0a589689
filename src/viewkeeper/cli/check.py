"""``viewkeeper check``: whether every source can be read exactly, and what its owner must do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.project.config import ProjectConfig, SourceConfig, read_project
from viewkeeper.terminal import FAILED, GOOD, Json, write_json, write_line, write_lines

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.sources.interface import Finding, Source

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "refused": ("✗", "bold red")}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("check")(check)


def check(
    setup_sql: Annotated[
        str | None,
        typer.Option(
            "--setup-sql", metavar="SOURCE", help="Print the script that this source's owner runs."
        ),
    ] = None,
    allow_setup: Annotated[
        bool,
        typer.Option("--allow-setup", help="Set the sources up first, where something is missing."),
    ] = False,
    project: Annotated[
        Path, typer.Option("--project", help="The project's folder, with its viewkeeper.toml.")
    ] = Path("."),
    as_json: Json = False,
) -> None:
    """Check that every source can be read exactly and is not harmed. Creates nothing by itself."""
    config = read_project(project)
    if setup_sql is not None:
        _print_script(config, setup_sql, as_json)
        return
    if not config.sources:
        raise UsageError(
            "no-sources",
            "the project has no sources",
            hint="add [sources.NAME] with a url to viewkeeper.toml",
        )
    reports = [_report(config, each, allow_setup) for each in config.sources.values()]
    good = not any(f["severity"] == "refused" for report in reports for f in report["findings"])
    views, notes = _views(config) if good else ([], [])
    refused = [view for view in views if view["error"] is not None]
    security = _security(config)
    if as_json:
        document = {"sources": reports, "views": views, "notes": notes, "security": security}
        write_json({"ok": good and not refused, **document})
    else:
        _show(reports, good)
        show_security(security)
        _show_views(refused)
        for view in views:
            if view["warning"] is not None:
                write_line(f"  ! {view['warning']} [level-not-reached]", "yellow")
        for note in notes:
            write_line(f"  ! {note}", "yellow")
    raise typer.Exit(GOOD if good and not refused else FAILED)


def _security(config: ProjectConfig) -> list[dict[str, Any]]:
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.project.security import security_of

    with Keeper(config) as keeper:
        return security_of(keeper)


def show_security(items: Sequence[dict[str, Any]]) -> None:
    """Links, rights, tokens and permissions, each with a mark, and what mends a warning."""
    write_line("Security", "bold")
    for item in items:
        mark, style = _MARKS[item["severity"]]
        write_line(f"  {mark} {item['subject']}: {item['message']} [{item['code']}]", style)
        if item["fix"] and item["severity"] != "ok":
            write_line(f"      fix: {item['fix']}")


def _views(config: ProjectConfig) -> tuple[list[dict[str, Any]], list[str]]:
    """Who keeps each view, or why none can, and notes on what is well but not as it may seem.

    The sources can be read, so names can be resolved.
    """
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.project.view_files import has_views

    if not has_views(config.views_folder):
        return [], []
    found: list[dict[str, Any]] = []
    with Keeper(config) as keeper:
        bad = {**keeper.bad_views, **keeper.stopped_views}
        for name in sorted({*bad, *keeper.read_views}):
            told: dict[str, Any]
            if name in bad:
                told = {"protocol": None, "level": None, "why": [], "warning": None}
                told["error"] = bad[name].as_dict()
            else:
                view = keeper.read_views[name]
                choice = view.choice
                level = str(min(choice.level, view.definition.level))
                told = {"protocol": choice.protocol, "level": level, "why": list(choice.why)}
                told |= {"warning": view.shortfall, "error": None}
            found.append({"view": name, **told})
        return found, list(_notes(keeper))


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


def _show_views(refused: Sequence[dict[str, Any]]) -> None:
    for view in refused:
        error = view["error"]
        write_line(f"  ✗ {error['message']} [{error['code']}]", "bold red")
        for text in (error["detail"], error["hint"]):
            if text:
                write_line(f"      {text}")


def _print_script(config: ProjectConfig, name: str, as_json: bool) -> None:
    with opened(config.source(name).as_far_as_known(), allow_setup=False) as source:
        script = source.setup_sql(_to_set_up(config, source))
    if as_json:
        write_json({"source": name, "setup_sql": script})
    else:
        write_lines(script.rstrip())


def _report(config: ProjectConfig, each: SourceConfig, allow_setup: bool) -> dict[str, Any]:
    """What one source's preflight says; a source that can't be reached is a finding too."""
    try:
        with opened(each, allow_setup) as source:
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
        "findings": [
            {"code": f.code, "severity": f.severity, "message": f.message, "fix": f.fix}
            for f in found
        ],
    }


def _needs_setup(source: Source, relations: Sequence[str]) -> bool:
    return any(finding.severity != "ok" for finding in source.preflight(relations))


def _as_finding(error: SourceError) -> Finding:
    from viewkeeper.sources.interface import Finding

    message = f"{error.message}: {error.detail}" if error.detail else error.message
    return Finding(error.code, "refused", message, error.hint)


def opened(each: SourceConfig, allow_setup: bool) -> Source:
    """The source as the project describes it; close it after use."""
    from viewkeeper.sources.opening import open_source

    return open_source(each.name, each.url, feed_url=each.feed_url, allow_setup=allow_setup)


def _relations(config: ProjectConfig, source: Source) -> list[str]:
    """The relations of the source that the project reads; all of them while it names none.

    A table that is not there is its view's trouble, and no fault of the source.
    """
    there = source.schemas()
    used = relations_of_views(config.views_folder).get(source.name, set())
    used |= _followed(config, source.name) | _named_as_spare(config, source.name)
    return sorted(used & there.keys()) if used else sorted(there)


def _to_set_up(config: ProjectConfig, source: Source) -> list[str]:
    """What the script of a source's owner is about. The role that asks for it may not be allowed to look:
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
    from viewkeeper.project.settings import storage_of
    from viewkeeper.warehouse.ledger import Ledger

    storage = storage_of(config)
    states = Ledger.open(storage).latest().shown_views if Ledger.exists(storage) else {}
    kept = (s.definition for s in states.values() if not s.definition.has_ended)
    names = (name.split(".", 1) for definition in kept for name in definition.relations or ())
    return {relation for owner, relation in names if owner == source}


def relations_of_views(folder: Path) -> dict[str, set[str]]:
    """By source, every relation that a view's text names. Whether the views are right is not asked."""
    import sqlglot
    from sqlglot import exp

    from viewkeeper.project.view_files import written_views

    used: dict[str, set[str]] = {}
    for text in written_views(folder).texts.values():
        try:
            statements = sqlglot.parse(text, read="spark")
        except (sqlglot.errors.SqlglotError, RecursionError):
            continue  # it names nothing that can be relied on; reading the views says what is wrong
        for statement in filter(None, statements):
            for table in statement.find_all(exp.Table):
                names = [part.name for part in table.parts]
                if len(names) > 1:
                    used.setdefault(names[0], set()).add(".".join(names[1:]))
    return used


def _show(reports: Sequence[dict[str, Any]], good: bool) -> None:
    for report in reports:
        kind = f" ({report['kind']})" if report["kind"] else ""
        write_line(f"{report['source']}{kind}", "bold")
        for finding in report["findings"]:
            mark, style = _MARKS[finding["severity"]]
            write_line(f"  {mark} {finding['message']} [{finding['code']}]", style)
            if finding["fix"] and finding["severity"] != "ok":
                write_line(f"      fix: {finding['fix']}")
    write_line()
    if good:
        write_line("Every source can be read exactly.", "green")
    else:
        write_line("Some source can't be read exactly yet: see the lines marked ✗.", "bold red")
