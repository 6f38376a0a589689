"""``viewkeeper lab``: protocols in a simulated world, judged by the checker.

Declared here, done in `viewkeeper.lab`, which is imported when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from viewkeeper.terminal import Json, help_if_alone

app = typer.Typer(
    name="lab",
    help="Try protocols in a simulated world: delays, reorderings, concurrent updates, a checker.",
)


@app.callback(invoke_without_command=True)
def lab(context: typer.Context) -> None:
    help_if_alone(context)


def register(parent: typer.Typer) -> None:
    """Add the commands of the lab."""
    parent.add_typer(app)


ProtocolName = Annotated[
    str, typer.Option("--protocol", "-p", help="Which protocol (see `lab protocols`).")
]
Sources = Annotated[
    int, typer.Option(min=1, max=12, help="How many sources; for eca: relations of its one source.")
]
Transactions = Annotated[
    int, typer.Option(min=0, max=10_000, help="How many transactions the sources commit in all.")
]
Seed = Annotated[int, typer.Option(min=0, help="Determines everything that happens.")]
ShapeName = Annotated[
    Literal["chain", "star", "any"],
    typer.Option(help="The view's joins; any: cycles, self-joins, several relations, UNION ALL."),
]
Inversions = Annotated[
    bool,
    typer.Option("--inversions", help="Queries see commits late and out of order, as PostgreSQL."),
]
NoFifo = Annotated[bool, typer.Option("--no-fifo", help="Messages overtake each other.")]
Search = Annotated[
    bool, typer.Option("--search", help="Judge without the cuts that the protocol claims.")
]
Beyond = Annotated[
    bool,
    typer.Option("--beyond-assumptions", help="Run it on a network that it does not promise for."),
]
Variant = Annotated[
    list[str] | None,
    typer.Option(help="A variant of the protocol; may be repeated (see `lab protocols --json`)."),
]
Views = Annotated[
    int | None,
    typer.Option(
        min=0, max=12, help="Several views, merged; 0: as many as the seed says. Shape: any."
    ),
]
PaintingName = Annotated[
    Literal["complete", "mixed", "convergent"] | None,
    typer.Option(help="What several views promise; complete if nothing is said."),
]


@app.command("run")
def run_command(
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", "-p", help="Which protocol (see `lab protocols`)."),
    ] = None,
    sources: Sources = 3,
    transactions: Transactions = 10,
    seed: Seed = 1,
    shape: ShapeName = "chain",
    inversions: Inversions = False,
    no_fifo: NoFifo = False,
    search: Search = False,
    beyond_assumptions: Beyond = False,
    variant: Variant = None,
    views: Views = None,
    painting: PaintingName = None,
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Show everything that happened.")
    ] = False,
    json: Json = False,
) -> None:
    """Run one seed, and tell which level of consistency the run reached."""
    from viewkeeper.lab import running, several_views
    from viewkeeper.lab.trials.choosing import chosen_trial, required, wish

    wanted = wish(
        sources=sources,
        transactions=transactions,
        shape=shape,
        inversions=inversions,
        no_fifo=no_fifo,
        search=search,
        beyond_assumptions=beyond_assumptions,
        variants=variant or (),
    )
    if views is not None or painting is not None:
        merged = several_views.views_trial(painting or "complete", views or 0, wanted, protocol)
        tell = several_views.transcribed(as_json=json) if transcript else several_views.untold
        several_views.run_views(merged, seed, tell, as_json=json)
    else:
        trial = chosen_trial(required(protocol), wanted)
        running.run(trial, seed, transcript=transcript, as_json=json)


@app.command("explore")
def explore_command(
    protocol: ProtocolName,
    sources: Sources = 3,
    transactions: Transactions = 3,
    seed: Seed = 1,
    shape: ShapeName = "chain",
    inversions: Inversions = False,
    no_fifo: NoFifo = False,
    beyond_assumptions: Beyond = False,
    json: Json = False,
) -> None:
    """Try every interleaving of a small scenario, and count them."""
    from viewkeeper.lab import exploring
    from viewkeeper.lab.trials.choosing import explorable_trial, wish

    wanted = wish(
        sources=sources,
        transactions=transactions,
        shape=shape,
        inversions=inversions,
        no_fifo=no_fifo,
        beyond_assumptions=beyond_assumptions,
    )
    exploring.explore_all(explorable_trial(protocol, wanted), seed, as_json=json)


@app.command("swarm")
def swarm_command(
    protocol: ProtocolName,
    seeds: Annotated[str, typer.Option(help="The first and the last seed: A..B.")],
    sources: Sources = 3,
    transactions: Transactions = 10,
    shape: ShapeName = "any",
    inversions: Inversions = False,
    no_fifo: NoFifo = False,
    search: Search = False,
    beyond_assumptions: Beyond = False,
    variant: Variant = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Processes; 0 means one for each processor.")
    ] = 0,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first failing seed.")
    ] = False,
    json: Json = False,
) -> None:
    """Run many seeds, and tell the first that misses its level."""
    from viewkeeper.lab import swarming
    from viewkeeper.lab.trials.choosing import chosen_trial, wish

    wanted = wish(
        sources=sources,
        transactions=transactions,
        shape=shape,
        inversions=inversions,
        no_fifo=no_fifo,
        search=search,
        beyond_assumptions=beyond_assumptions,
        variants=variant or (),
    )
    swarming.swarm(
        chosen_trial(protocol, wanted),
        swarming.parse_seeds(seeds),
        jobs=jobs,
        fail_fast=fail_fast,
        as_json=json,
    )


@app.command("protocols")
def protocols_command(json: Json = False) -> None:
    """List the protocols: the level each reaches, what it assumes, where it comes from."""
    from viewkeeper.lab import listing

    listing.list_protocols(as_json=json)


@app.command("show")
def show_command(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario's name, or a .toml file; without it, the list of names."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", "-p", help="Play it under another protocol.")
    ] = None,
    views: Views = None,
    painting: PaintingName = None,
    sources: Sources = 3,
    transactions: Transactions = 10,
    seed: Seed = 1,
    inversions: Inversions = False,
    no_fifo: NoFifo = False,
    svg: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Also draw it into this file.")
    ] = None,
    json: Json = False,
) -> None:
    """Show a scenario's messages as a chart; of several views, the table after each message.

    The tables are those of an example of the MVC paper (mvc-example-1 …), or with --views or --painting
    those of a seed: the options are those of `lab run`.
    """
    from viewkeeper.lab import showing, tables
    from viewkeeper.lab.several_views import views_trial
    from viewkeeper.lab.trials.choosing import wish

    if views is not None or painting is not None:
        wanted = wish(
            sources=sources,
            transactions=transactions,
            shape="any",
            inversions=inversions,
            no_fifo=no_fifo,
        )
        trial = views_trial(painting or "complete", views or 0, wanted, protocol)
        tables.show_seed(trial, seed, scenario, svg, as_json=json)
    elif scenario is None:
        showing.list_scenarios(as_json=json)
    elif scenario in tables.SHOWN:
        tables.show_example(scenario, protocol, svg, as_json=json)
    else:
        showing.show(scenario, protocol, svg, as_json=json)


@app.command("compare")
def compare_command(
    plot: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Also draw the charts into this SVG file.")
    ] = None,
    only: Annotated[
        Literal["sweep", "rings", "medwrap", "merging"] | None,
        typer.Option(help="Only what this paper compares."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure what papers claim: levels, messages and their size, delays, space."""
    from viewkeeper.lab.comparisons import comparing

    comparing.compare(plot, only, as_json=json)
