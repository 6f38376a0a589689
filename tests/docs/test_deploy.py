"""What is under deploy/ fits the program: metrics of the board, commands of the unit and the image."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from docsite import commands
from viewkeeper.reports.metrics import METRICS

DEPLOY = Path(__file__).parents[2] / "deploy"
KNOWN = {name for name, _, _ in METRICS}


def test_the_board_names_metrics_that_exist() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    texts += [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    named = {name for text in texts for name in re.findall(r"viewkeeper_\w+", text)}
    assert len(named) > 10
    assert named - KNOWN == set()


def test_panels_do_not_lie_on_each_other() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("file", ["viewkeeper.service", "Containerfile"])
def test_its_commands_exist_with_their_options(file: str) -> None:
    text = (DEPLOY / file).read_text()
    called = re.findall(r"^ExecStart=\S*viewkeeper (.*)$", text, re.MULTILINE)
    for words in re.findall(r"^(?:CMD|.* CMD) (\[.*\])$", text, re.MULTILINE):
        called.append(shlex.join(json.loads(words)).removeprefix("viewkeeper "))
    assert called
    known = dict(commands.commands())
    for line in called:
        name, *rest = shlex.split(line)
        options = {option for p in known[f"viewkeeper {name}"].params for option in p.opts}
        assert {word for word in rest if word.startswith("--")} <= options


def test_the_metrics_port_is_the_same_everywhere() -> None:
    docs = DEPLOY.parent / "docs" / "howto"
    unit = re.search(r"--metrics-port (\d+)", (DEPLOY / "viewkeeper.service").read_text())[1]
    for page in ("service.md", "prometheus.md"):
        assert set(
            re.findall(r"(?:--metrics-port |127\.0\.0\.1:)(\d+)", (docs / page).read_text())
        ) == {unit}
