"""The lab's part of the API."""

from __future__ import annotations

from typing import Any

from viewkeeper.dashboard.endpoints import Endpoint, Parameter, Values
from viewkeeper.lab.comparisons.plots import plot_names, plotted
from viewkeeper.lab.listing import listed
from viewkeeper.lab.painting import painted_example, painted_run
from viewkeeper.lab.playing import played_scenario, played_trial
from viewkeeper.protocols.registry import PROTOCOLS
from viewkeeper.simulator.merging.examples import EXAMPLES
from viewkeeper.simulator.merging.run import Painting
from viewkeeper.simulator.scenario_file import load_scenario, shipped_names

_SEED = Parameter("seed", "query", int, "which run: the same seed, the same run")


def lab_endpoints() -> list[Endpoint]:
    """What the lab page asks for."""
    return [
        Endpoint("GET", "/api/lab", "Protocols, scenarios and examples to choose from", _choices),
        Endpoint(
            "GET", "/api/lab/scenario", "Play a scenario, step by step", _scenario,
            (
                Parameter("name", "query", str, "a scenario's name", required=True),
                Parameter("protocol", "query", str, "another protocol than its own"),
            ),
            "steps, states, messages on their way, and the checker's verdict",
        ),
        Endpoint(
            "GET", "/api/lab/run", "Run a protocol on a random history, step by step", _run,
            (
                Parameter("protocol", "query", str, "a protocol's name", required=True),
                _SEED,
                Parameter("sources", "query", int, "how many sources"),
                Parameter("transactions", "query", int, "how many transactions in all"),
            ),
            "as a scenario",
        ),
        Endpoint(
            "GET", "/api/lab/painting", "The view update table, message by message", _painting,
            (
                Parameter("example", "query", str, "one of the paper's examples"),
                Parameter("painting", "query", str, "or what the views promise, for a random run"),
                _SEED,
                Parameter("views", "query", int, "how many views"),
            ),
        ),
        Endpoint(
            "GET", "/api/lab/comparison", "What protocols cost, as lines to draw",
            lambda values: {"panels": plotted(values["name"])},
            (Parameter("name", "query", str, "which comparison", required=True),),
        ),
    ]  # fmt: skip


def _choices(values: Values) -> dict[str, Any]:
    files = [load_scenario(name) for name in shipped_names()]
    return {
        # Only these can play a scenario: others have a world of their own.
        "protocols": [
            entry | {"plays_scenarios": entry["name"] in PROTOCOLS} for entry in listed()
        ],
        "scenarios": [
            {"name": f.name, "title": f.title, "paper": f.paper, "protocol": f.protocol.name}
            for f in files
        ],
        "examples": [{"name": name, "title": each.title} for name, each in EXAMPLES.items()],
        "paintings": [each.value for each in Painting],
        "comparisons": plot_names(),
    }


def _scenario(values: Values) -> dict[str, Any]:
    return played_scenario(values["name"], values["protocol"])


def _run(values: Values) -> dict[str, Any]:
    seed, sources, transactions = values["seed"], values["sources"], values["transactions"]
    return played_trial(values["protocol"], seed or 1, sources or 3, transactions or 5)


def _painting(values: Values) -> dict[str, Any]:
    if values["example"] is not None:
        return painted_example(values["example"])
    return painted_run(
        values["painting"] or Painting.COMPLETE.value, values["seed"] or 1, values["views"] or 3
    )
