"""The page of events, from the classes: their fields and their docstrings are its table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields

from viewkeeper.demo.events import DEMO_EVENTS
from viewkeeper.run_events import RUN_EVENTS, Event


def page() -> str:
    return "\n".join(
        [
            "# Events\n",
            "Made from the program by `make reference`. `viewkeeper run --json` and `viewkeeper demo --json` write one object per",
            "line, with `event` and the fields below; `--log` has the same under `fields`. A field in parentheses is left out where",
            "there is nothing to say. From Python, `Keeper.run(on_event=…)` gets objects of the classes, in",
            "`viewkeeper.run_events`; `as_dict()` gives the object that `--json` writes.\n",
            "## Of a run\n",
            *table(RUN_EVENTS),
            "\n## Of the demo\n",
            *table(DEMO_EVENTS),
            "",
        ]
    )


def table(events: Iterable[type[Event]]) -> Iterable[str]:
    yield "| event | class | fields | when |\n|---|---|---|---|"
    for each in events:
        told = " ".join((each.__doc__ or "").split())
        yield f"| `{each.name}` | `{each.__name__}` | {', '.join(field_names(each)) or '–'} | {told} |"


def field_names(event: type[Event]) -> list[str]:
    return [
        f"`{each.name}`" if each.default is MISSING else f"(`{each.name}`)"
        for each in fields(event)
    ]
