"""The dashboard's API, from the table that its routes are made of."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any, cast

from viewkeeper.dashboard.api import Api, with_description
from viewkeeper.dashboard.endpoints import Endpoint
from viewkeeper.dashboard.lab_endpoints import lab_endpoints


def endpoints() -> list[Endpoint]:
    """All of them; none is called, so there need be no project."""
    nowhere = cast(Any, SimpleNamespace(config=SimpleNamespace(folder=".")))
    api = Api.__new__(Api)
    api._monitor = nowhere
    return with_description([*api.endpoints(), *lab_endpoints()])


def page() -> str:
    lines = [
        "# API of the dashboard\n",
        (
            "Made from the program by `make reference`. [`viewkeeper ui`](../dashboard.md) serves it; the same in OpenAPI's "
            "words is at `/api/openapi.json`. What changes something is a POST and needs the token or the header that the "
            "dashboard's page describes.\n"
        ),
    ]
    for endpoint in endpoints():
        lines += [
            f"## {endpoint.method} {endpoint.path}\n",
            f"{inspect.cleandoc(endpoint.summary)}.",
        ]
        if endpoint.gives:
            lines.append(f"Gives {endpoint.gives}.")
        if endpoint.parameters:
            lines.append("\n| parameter | in | |\n|---|---|---|")
            for parameter in endpoint.parameters:
                required = " Required." if parameter.required else ""
                lines.append(
                    f"| `{parameter.name}` | {parameter.where} | {parameter.meaning}.{required} |"
                )
        lines.append("")
    return "\n".join(lines) + "\n"
