"""``viewkeeper import-dbt``: the models of a dbt project become views of this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viewkeeper.errors import UsageError
from viewkeeper.terminal import FAILED, GOOD, Json, write_json, write_line, write_lines


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("import-dbt")(import_dbt)


def import_dbt(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The dbt project's folder.")],
    project: Annotated[
        Path, typer.Option("--project", help="The project to write the views to.")
    ] = Path("."),
    skip: Annotated[
        bool, typer.Option("--skip", help="Leave out models that can't be imported.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make views from a dbt project's models: ref() and source() become names.

    All models or none, unless --skip is given. Macros, variables and conditions are refused, each with
    its line. No view file is written over.
    """
    from viewkeeper.importing.dbt_project import imported
    from viewkeeper.project.config import VIEWS_FOLDER

    found = imported(folder)
    if found.refusals and not skip:
        raise UsageError(
            "dbt-unsupported",
            f"{len(found.refusals)} things in {folder} can't be imported",
            detail="; ".join(map(str, found.refusals)),
            hint="mend them, or import the other models with --skip",
        )
    target = project / VIEWS_FOLDER
    there = [name for name in found.views if (target / f"{name}.sql").exists()]
    if there:
        raise UsageError(
            "files-exist",
            f"{target} has views of the same names",
            detail=", ".join(there),
            hint="name another project with --project, or move them away",
        )
    target.mkdir(parents=True, exist_ok=True)
    for name, text in found.views.items():
        (target / f"{name}.sql").write_text(text, encoding="utf-8")
    missing = _missing_sources(project, found.sources)
    if as_json:
        write_json(
            {
                "views": list(found.views),
                "sources": list(found.sources),
                "sources_missing": missing,
                "skipped": [str(refusal) for refusal in found.refusals],
            }
        )
    else:
        write_line(f"{len(found.views)} views are in {target}: {', '.join(found.views)}")
        for refusal in found.refusals:
            write_line(f"left out: {refusal}")
        if missing:
            write_line("viewkeeper.toml still needs:", "bold")
            for name in missing:
                write_lines(f'  [sources.{name}]\n  url = "…"')
        write_line("Next: viewkeeper check, then viewkeeper explain")
    raise typer.Exit(GOOD if found.views else FAILED)


def _missing_sources(project: Path, used: tuple[str, ...]) -> list[str]:
    from viewkeeper.project.config import PROJECT_FILE, read_project

    known = read_project(project).sources if (project / PROJECT_FILE).exists() else {}
    return [name for name in used if name not in known]
