"""``viewkeeper advise``: which relations a view should keep copies of, by what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.choices import copy_text, many, size
from viewkeeper.cli.explain import show_bad
from viewkeeper.cli.run import Project
from viewkeeper.terminal import FAILED, GOOD, Json, write_json, write_line


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("advise")(advise)


def advise(
    view: Annotated[str | None, typer.Argument(help="One view; all of them without it.")] = None,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Propose what to keep at the warehouse, from what runs have asked the sources so far."""
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.reports.advice import advice_document

    with Keeper.open(project) as keeper:
        document = advice_document(keeper, view)
    if as_json:
        write_json(document)
    else:
        show(document)
        show_bad(document["bad"])
    raise typer.Exit(FAILED if document["bad"] else GOOD)


def show(document: dict[str, Any]) -> None:
    """The same for people."""
    over = document["measured"]
    if over["batches"]:
        write_line(
            f"measured since {over['since']}: {many(over['transactions'], 'transaction')} in "
            f"{many(over['batches'], 'batch', 'es')}"
        )
    else:
        write_line("nothing was measured yet: `viewkeeper run` counts while it keeps the views")
    for view in document["views"]:
        write_line()
        write_line(view["view"], "bold")
        if view["remark"]:
            write_line(f"  {view['remark']}")
        for each in view["relations"]:
            _show_relation(each)
        if view["header"]:
            write_line(f"  write above the query:  {view['header']}", "green")


def _show_relation(each: dict[str, Any]) -> None:
    told = each["measured"]
    write_line(f"  {each['relation']}: {each['advice']}", "cyan")
    write_line(f"    {each['reason']}")
    write_line(
        f"    asked for {many(told['queries'], 'time')}: {many(told['rows'], 'row')}, "
        f"{size(told['bytes'])}; {many(told['changed'], 'row')} changed; a copy: {copy_text(each)}"
    )
