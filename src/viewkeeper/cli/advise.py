"""``viewkeeper advise``: which relations a view should keep copies of, by what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.cli.choices import copy_text, many, size
from viewkeeper.cli.explain import Project, bad_ones, known_view, show_bad
from viewkeeper.terminal import FAILED, GOOD, Json, write_json, write_line

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.views.advice import Advice
    from viewkeeper.views.definition import RelationName, ViewDefinition


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

    with Keeper.open(project) as keeper:
        bad = bad_ones(keeper, view)
        document = advice_on(keeper, view)
    if as_json:
        write_json(document | {"bad": {n: e.as_dict() for n, e in bad.items()}})
    else:
        show(document)
        show_bad(bad)
    raise typer.Exit(FAILED if bad else GOOD)


def advice_on(keeper: Keeper, view: str | None) -> dict[str, Any]:
    """All that is shown, for programs."""
    from viewkeeper.live.questions.traffic import measured, no_traffic
    from viewkeeper.live.reading.row_estimates import row_estimates
    from viewkeeper.reports.run_state import read_run_state

    definitions = {name: each.definition for name, each in keeper.views.items()}
    if view is not None:
        definitions = {view: known_view(definitions, view)}
    traffic = read_run_state(keeper.config.folder).get("traffic") or no_traffic("")
    relations = [name for each in definitions.values() for name in each.relations]
    sources = {name.source: keeper.source(name.source) for name in relations}
    sizes = row_estimates(sources, relations)
    told = measured(traffic)
    return {
        "measured": {name: traffic[name] for name in ("since", "batches", "transactions")},
        "views": [_advised(each, sizes, told) for each in definitions.values()],
    }


def _advised(
    definition: ViewDefinition, sizes: Mapping[RelationName, int], traffic: Mapping[str, Any]
) -> dict[str, Any]:
    from viewkeeper.errors import UsageError
    from viewkeeper.protocols.choice import choice_for
    from viewkeeper.views.advice import Traffic, advised, choices

    document: dict[str, Any] = {"view": definition.name, "relations": [], "header": None}
    try:
        choice = choice_for(definition)
    except UsageError as error:
        return document | {"remark": f"it can't be kept as it is declared: {error.message}"}
    if not choice.is_incremental:
        return document | {"remark": f"it is kept by {choice.protocol}, which reads no copies"}
    found = [
        advised(each, traffic.get(str(each.relation), Traffic()))
        for each in choices(definition, sizes)
    ]
    remark = None if found else "nothing is joined, so nothing is asked"
    kept = [str(each.choices.relation) for each in found if each.keep]
    is_news = any(each.keep and not each.choices.is_kept for each in found)
    return document | {
        "relations": [_document(each) for each in found],
        "header": f"-- keep: {', '.join(kept)}" if is_news else None,
        "remark": remark,
    }


def _document(advice: Advice) -> dict[str, Any]:
    return advice.choices.as_dict() | {
        "measured": vars(advice.traffic),
        "advice": "keep" if advice.keep else "ask",
        "reason": advice.reason,
    }


# -- for people -------------------------------------------------------------------------------------


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
