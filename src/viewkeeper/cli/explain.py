"""``viewkeeper explain``: what a view is, what it asks of whom, and what it can promise."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli.run import Project
from viewkeeper.terminal import FAILED, GOOD, Json, console, write_json, write_line
from viewkeeper.visible import visible

# A line of a plan is broken here, also on a wide terminal: it must be taken in at a glance.
WIDTH_MAX = 100


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("explain")(explain)


def explain(
    view: Annotated[str | None, typer.Argument(help="One view; all of them without it.")] = None,
    project: Project = Path("."),
    as_json: Json = False,
) -> None:
    """Show a view's definition, what is asked of whom per change, and the level it can reach."""
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.reports.explain import explain_document

    with Keeper.open(project) as keeper:
        document = explain_document(keeper, view)
    if as_json:
        write_json(document)
    else:
        for index, each in enumerate(document["views"]):
            if index:
                write_line()
            show(each)
        show_bad(document["bad"])
    raise typer.Exit(FAILED if document["bad"] else GOOD)


def show_bad(bad: Mapping[str, Mapping[str, Any]]) -> None:
    """What is wrong with the views that could not be read, for people."""
    for name, error in bad.items():
        write_line()
        write_line(f"✗ {name}: {error['message']} [{error['code']}]", "bold red")
        for text in (error["detail"], error["hint"]):
            if text:
                write_line(f"    {text}")


def show(document: dict[str, Any]) -> None:
    """The same for people, at most `WIDTH_MAX` wide where nothing longer has to be copied."""
    from viewkeeper.cli.flow import flow_lines

    write_line(document["name"], "bold")
    for line in flow_lines(document):
        write_line(line)
    _heading("Definition, as it was understood")
    for line in document["sql"].rstrip("\n").split("\n"):
        write_line(f"  {line}")
    for remark in document["remarks"]:
        _wrapped(f"! {remark}")
    _show_fragments(document)
    _heading("Read of each relation")
    for read in document["reads"]:
        unread = f"   (not: {', '.join(read['left_out'])})" if read["left_out"] else ""
        _wrapped(f"{read['relation']}: {', '.join(read['columns'])}{unread}")
    _show_changes(document)
    _show_choices(document)
    _show_level(document)


def _show_fragments(document: dict[str, Any]) -> None:
    _heading("Each source's part of it")
    terms = [*(term for step in document["steps"] for term in step["terms"]), *document["terms"]]
    fragments = [fragment for term in terms for fragment in term["fragments"]]
    for fragment in fragments:
        if fragment["source"] in document["sources"]:
            write_line(f"  {fragment['source']}", "cyan")
            _wrapped(fragment["sql"], "    ")


def _show_changes(document: dict[str, Any]) -> None:
    if not document["incremental"]:
        return
    _heading("Asked when something changes (once per batch of transactions, keys out, rows back)")
    many = len(document["terms"]) > 1
    for change in document["changes"]:
        term = f", term {change['term'] + 1}" if many else ""
        count = change["questions"]
        asked = f"{count} question{'s' * (count != 1)}" if count else "nothing is asked"
        write_line(f"  a change of {change['relation']} ({change['alias']}{term}): {asked}", "cyan")
        for number, hop in enumerate(change["asks"], 1):
            _wrapped(f"{number}. {_question(hop)}", "    ")


def _show_choices(document: dict[str, Any]) -> None:
    from viewkeeper.cli.choices import choice_lines

    if document["choices"]:
        _heading("To ask or to keep (`-- keep:`; `viewkeeper advise` goes by what is measured)")
    for line in choice_lines(document["choices"]):
        _wrapped(line)


def _question(hop: dict[str, Any]) -> str:
    if hop["whole_relation"]:
        return f"{hop['source']}: all of {hop['relation']} ({hop['alias']}), nothing equal joins it"
    pairs = zip(hop["by"], hop["keys_from"], strict=True)
    keys = " and ".join(f"{theirs} among the values of {mine}" for theirs, mine in pairs)
    return f"{hop['source']}: rows of {hop['relation']} with {keys}"


def _show_level(document: dict[str, Any]) -> None:
    reaches = document["reaches"]
    _heading("Maintained")
    if document["refused"] is not None:
        refused = document["refused"]
        write_line("  not as it is declared, so `viewkeeper run` refuses it:", "yellow")
        for text in (refused["message"], refused["detail"], refused["hint"]):
            if text:
                _wrapped(text, "    ")
        return
    if document["incremental"]:
        write_line("  from changes")
    else:
        write_line("  computed anew, from whole relations at exact cuts", "yellow")
    declared = f"declared: {reaches['declared']}"
    _wrapped(f"reaches {reaches['level']} consistency with {reaches['protocol']} ({declared})")
    for reason in reaches["why"]:
        _wrapped(f"· {reason}", "    ")
    for store in document["keeps"]:
        _wrapped(f"kept beside it, {store['store']}: {store['holds']}")
    others = [
        f"{each['protocol']} ({each['level']})"
        for each in document["protocols"]
        if each["refused_because"] is None
    ]
    _wrapped(f"could also be kept by `-- protocol:` {', '.join(others)}")


def _heading(text: str) -> None:
    write_line()
    write_line(text, "bold")


def _wrapped(text: str, indent: str = "  ") -> None:
    width = min(WIDTH_MAX, console().width)
    lines = textwrap.wrap(
        visible(text), width, initial_indent=indent, subsequent_indent=indent + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    for line in lines:
        write_line(line)
