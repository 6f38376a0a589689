"""``viewkeeper explain``: what a view is, what it asks of whom, and what it can promise."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.terminal import FAILED, GOOD, Json, console, write_json, write_line
from viewkeeper.visible import visible

if TYPE_CHECKING:
    from viewkeeper.project.keeper import Keeper
    from viewkeeper.protocols.choice import Choice
    from viewkeeper.views.definition import RelationName, ViewDefinition
    from viewkeeper.views.planning import Route

Project = Annotated[
    Path, typer.Option("--project", help="The project's folder, with its viewkeeper.toml.")
]

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
    from viewkeeper.live.reading.row_estimates import row_estimates
    from viewkeeper.project.keeper import Keeper

    with Keeper.open(project) as keeper:
        definitions = {name: each.definition for name, each in keeper.views.items()}
        texts = {name: each.text for name, each in keeper.views.items()}
        sources = {name: keeper.source(name) for name in keeper.config.sources}
        bad = bad_ones(keeper, view)
        if view is not None:
            definitions = {view: known_view(definitions, view)}
        relations = [name for each in definitions.values() for name in each.relations]
        sizes = row_estimates(sources, relations)
    kinds = {name: source.kind for name, source in sources.items()}
    documents = [explained(each, kinds, texts[name], sizes) for name, each in definitions.items()]
    if as_json:
        write_json({"views": documents, "bad": {n: e.as_dict() for n, e in bad.items()}})
    else:
        for index, document in enumerate(documents):
            if index:
                write_line()
            show(document)
        show_bad(bad)
    raise typer.Exit(FAILED if bad else GOOD)


def bad_ones(keeper: Keeper, view: str | None) -> dict[str, ViewkeeperError]:
    """Views that have no right text; raises the error of the one that is asked for."""
    bad = {n: e for n, e in keeper.bad_views.items() if n not in keeper.views}
    if view is None:
        return bad
    if view in bad:
        raise bad[view]
    return {}


def show_bad(bad: Mapping[str, ViewkeeperError]) -> None:
    """What is wrong with the views that could not be read, for people."""
    for name, error in bad.items():
        write_line()
        write_line(f"✗ {name}: {error.message} [{error.code}]", "bold red")
        for text in (error.detail, error.hint):
            if text:
                write_line(f"    {text}")


def known_view(definitions: dict[str, ViewDefinition], view: str) -> ViewDefinition:
    """One of the project's views; raises UsageError."""
    if view not in definitions:
        raise UsageError(
            "unknown-view",
            f"the project has no view {view}",
            detail=f"its views are {', '.join(definitions)}",
        )
    return definitions[view]


# -- the facts --------------------------------------------------------------------------------------


def explained(
    definition: ViewDefinition,
    kinds: dict[str, str],
    text: str | None = None,
    sizes: Mapping[RelationName, int] | None = None,
) -> dict[str, Any]:
    """All that is shown, for programs: `views.describe`, what follows from it, remarks on the text.

    ``sizes``: about how many rows relations have, where that is known.
    """
    from viewkeeper.sql.remarks import remarks
    from viewkeeper.views.advice import choices
    from viewkeeper.views.describe import described
    from viewkeeper.views.planning import reads, routes
    from viewkeeper.views.printing import view_sql
    from viewkeeper.views.pruning import pruned
    from viewkeeper.views.upkeep import Upkeep

    choice, refused = _choice(definition)
    incremental = choice is not None and not choice.is_recomputed
    by_sweep = choice is not None and choice.is_incremental
    upkeep = Upkeep(pruned(definition))
    kept = frozenset(upkeep.kept) if by_sweep else frozenset()
    stores = upkeep.stores if by_sweep else ()
    return described(definition) | {
        "sql": view_sql(definition),
        "remarks": [] if text is None else list(remarks(definition.name, text)),
        "kinds": {source: kinds[source] for source in definition.sources},
        "incremental": incremental,
        "not_incremental_because": list(choice.why) if choice and not incremental else [],
        "refused": None if refused is None else refused.as_dict(),
        "reaches": _reached(definition, choice),
        "protocols": _protocols(definition),
        "keeps": [{"store": store.name, "holds": store.holds} for store in stores],
        "reads": [
            {
                "relation": str(read.name),
                "columns": list(read.columns),
                "left_out": list(read.left_out),
            }
            for read in reads(definition)
        ],
        "changes": [_change(way, kept) for way in routes(definition)] if incremental else [],
        "choices": [c.as_dict() for c in choices(definition, sizes or {})] if by_sweep else [],
    }


def _choice(definition: ViewDefinition) -> tuple[Choice | None, UsageError | None]:
    """Who keeps the view, or why nobody does."""
    from viewkeeper.protocols.choice import choice_for

    try:
        return choice_for(definition), None
    except UsageError as error:
        return None, error


def _change(route: Route, kept: frozenset[RelationName]) -> dict[str, Any]:
    from viewkeeper.views.definition import LOCAL

    asked = [hop.name.source != LOCAL and hop.name not in kept for hop in route.hops]
    return {
        "term": route.term,
        "alias": route.alias,
        "relation": _named(route.name),
        # What the warehouse keeps itself, it need not ask for.
        "questions": sum(asked),
        "asks": [
            {
                "source": hop.name.source if is_asked else "the warehouse",
                "relation": _named(hop.name),
                "alias": hop.alias,
                "by": list(hop.key_columns),
                "keys_from": list(hop.from_columns),
                "whole_relation": hop.is_whole,
            }
            for hop, is_asked in zip(route.hops, asked, strict=True)
        ],
    }


def _named(name: RelationName) -> str:
    from viewkeeper.views.definition import LOCAL

    return f"step {name.relation}" if name.source == LOCAL else str(name)


def _reached(definition: ViewDefinition, choice: Choice | None) -> dict[str, Any]:
    """The level that a run reaches with this view, by which protocol and why; none if it can't."""
    from viewkeeper.protocols.batched_sweep import BatchedSweep

    protocol = None if choice is None else choice.protocol
    if choice is not None and choice.is_incremental:
        protocol = BatchedSweep.name
    return {
        "declared": str(definition.level),
        "declared_protocol": definition.protocol,
        "level": None if choice is None else str(choice.level),
        "protocol": protocol,
        "meets_declared": choice is not None and choice.level >= definition.level,
        "why": [] if choice is None else list(choice.why),
    }


def _protocols(definition: ViewDefinition) -> list[dict[str, Any]]:
    """Every protocol: whether it could keep the view, what it would promise and ask."""
    from viewkeeper.protocols.registry import LIVE

    return [
        {
            "protocol": each.name,
            "level": str(each.level),
            "asks": each.asks,
            "refused_because": None if refused is None else refused.detail or refused.message,
        }
        for each in LIVE.values()
        for refused in (each.refusal(definition),)
    ]


# -- for people -------------------------------------------------------------------------------------


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
