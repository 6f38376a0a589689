"""``viewkeeper check``: whether every source can be read exactly, and what its owner must do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.cli.output import FAILED, GOOD, Json, write_json, write_line
from viewkeeper.errors import SourceError, UsageError
from viewkeeper.project import ProjectConfig, SourceConfig, read_project

if TYPE_CHECKING:
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
    views = _views(config) if good else []
    refused = [view for view in views if view["error"] is not None]
    if as_json:
        write_json({"ok": good and not refused, "sources": reports, "views": views})
    else:
        _show(reports, good)
        _show_views(refused)
    raise typer.Exit(GOOD if good and not refused else FAILED)


def _views(config: ProjectConfig) -> list[dict[str, Any]]:
    """Who keeps each view, or why nobody can; the sources can be read, so names can be resolved."""
    from viewkeeper.runtime.keeper import Keeper
    from viewkeeper.runtime.view_files import has_views

    if not has_views(config.views_folder):
        return []
    found: list[dict[str, Any]] = []
    with Keeper(config) as keeper:
        for name, view in keeper.views.items():
            try:
                choice = view.choice
            except UsageError as error:
                found.append({"view": name, "protocol": None, "why": [], "error": error.as_dict()})
            else:
                told = {"protocol": choice.protocol, "why": list(choice.why), "error": None}
                found.append({"view": name, **told})
    return found


def _show_views(refused: Sequence[dict[str, Any]]) -> None:
    for view in refused:
        error = view["error"]
        write_line(f"  ✗ {error['message']} [{error['code']}]", "bold red")
        for text in (error["detail"], error["hint"]):
            if text:
                write_line(f"      {text}")


def _print_script(config: ProjectConfig, name: str, as_json: bool) -> None:
    with opened(config.source(name), allow_setup=False) as source:
        script = source.setup_sql(_relations(config, source))
    if as_json:
        write_json({"source": name, "setup_sql": script})
    else:
        write_line(script.rstrip())


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
    """The relations of the source that the project's views read; all of them while there are none."""
    used = relations_of_views(config.views_folder).get(source.name)
    return sorted(used) if used else sorted(source.schemas())


def relations_of_views(folder: Path) -> dict[str, set[str]]:
    """By source, every relation that a view's text names. Whether the views are right is not asked."""
    import sqlglot
    from sqlglot import exp

    from viewkeeper.runtime.view_files import written_views

    used: dict[str, set[str]] = {}
    for name, text in written_views(folder).items():
        try:
            statements = sqlglot.parse(text, read="spark")
        except sqlglot.errors.SqlglotError as error:
            raise UsageError(
                "bad-view",
                f"the view {name} can't be read as SQL",
                detail=str(error).splitlines()[0],
            ) from None
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
