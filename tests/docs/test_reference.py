"""The reference names everything that the program has, and nothing that it has not."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from docsite import commands, error_codes, events, interface, settings, shapes
from viewkeeper.demo.events import DEMO_EVENTS
from viewkeeper.reports.metrics import METRICS
from viewkeeper.run_events import RUN_EVENTS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
ANEW = "run make reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def test_every_command_and_option_is_there() -> None:
    text = page("commands")
    sections = dict(re.findall(r"^## (viewkeeper .+)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE))
    assert set(sections) == {words for words, _ in commands.commands()}, ANEW
    for words, command in commands.commands():
        wanted = {commands.written(p) for p in command.params if "--help" not in p.opts}
        assert first_cells(sections[words]) == wanted, f"{words}: {ANEW}"


def test_every_command_has_json() -> None:
    for words, command in commands.commands():
        assert any("--json" in p.opts for p in command.params), words


def test_every_setting_and_header_is_described() -> None:
    assert set(settings.SETTINGS) == set(settings.setting_names()), (
        "describe it in tools/docsite/settings.py"
    )
    assert set(settings.HEADERS) == set(settings.header_words())
    text = page("settings")
    assert "not described yet" not in text
    missing = {key.rpartition(".")[2] for key in settings.setting_names()} | set(
        settings.header_words()
    )
    assert missing - first_cells(text) == set(), ANEW


def test_every_error_code_is_there() -> None:
    text, _, checks = page("errors").partition("## What check finds")
    codes = {saying.code for saying in error_codes.sayings()} | {"invariant-violated"}
    assert len(codes) > 150
    assert {c for c in first_cells(text) if c not in codes} == set(), ANEW
    assert codes - first_cells(text) == set(), ANEW
    assert {finding.code for finding in error_codes.findings()} == first_cells(checks), ANEW


def test_a_code_that_is_computed_is_found_all_the_same() -> None:
    """Every place that makes one of our errors gives at least one code."""
    for file in sorted(error_codes.PACKAGE.rglob("*.py")):
        module = error_codes.module_of(file)
        for call in module.calls(*error_codes.FAMILIES):
            # A parameter, or an error that came from another process: its code is made elsewhere.
            if call.args and not isinstance(call.args[0], ast.Name | ast.Subscript):
                assert module._codes(call.args[0]), f"{module.name}:{call.lineno}"
    codes = {saying.code for saying in error_codes.sayings()}
    assert {"link-lost", "division-by-zero", "schema-drift", "inexact-cascade"} <= codes


def test_every_metric_is_there() -> None:
    assert first_cells(page("metrics")) == {name for name, _, _ in METRICS}, ANEW


def test_every_event_is_there_with_its_fields() -> None:
    run, demo = page("events").split("## Of the demo")
    for text, kinds in ((run, RUN_EVENTS), (demo, DEMO_EVENTS)):
        rows = [row for row in text.splitlines() if row.startswith("| `")]
        assert rows == [row for row in events.table(kinds) if row.startswith("| `")], ANEW
        assert first_cells(text) == {kind.name for kind in kinds}
        for kind in kinds:
            assert kind.__doc__ is not None, kind
            assert not kind.__doc__.startswith(f"{kind.__name__}("), (
                kind
            )  # what dataclass would write


def test_every_endpoint_is_there() -> None:
    listed = set(re.findall(r"^## (\w+ /\S+)$", page("api"), re.MULTILINE))
    assert listed == {f"{e.method} {e.path}" for e in interface.endpoints()}, ANEW


def test_the_shape_of_every_document_is_there() -> None:
    listed = re.findall(
        r"^## (viewkeeper [^\n]+)\n\n```json\n(.*?)\n```", page("json"), re.S | re.M
    )
    assert [command for command, _ in listed] == list(shapes.RUNS), ANEW
    for command, text in listed:
        assert "error" not in json.loads(text), command


def test_a_shape_has_types_in_place_of_values() -> None:
    document = {"a": 1, "b": ["x", "y"], "c": {"s": {"n": 1}, "t": {"n": 2}}, "d": None, "e": True}
    assert shapes.shape(document) == {
        "a": "number",
        "b": ["text"],
        "c": {"NAME": {"n": "number"}},
        "d": "null",
        "e": "true or false",
    }
