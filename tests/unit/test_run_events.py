"""Events of runs and of the demo: what programs read of them is as it was recorded, and no code matches them by strings."""

from __future__ import annotations

import ast
import json
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from event_samples import BATCH, DEMO, RUN
from viewkeeper.demo.events import DEMO_EVENTS
from viewkeeper.run_events import RUN_EVENTS, Event, RunStopped, ViewsLoaded, event_from_dict

SOURCE = Path(__file__).parents[2] / "src" / "viewkeeper"
SAMPLES = [
    *((kind, sample) for kind in RUN_EVENTS for sample in RUN[kind.name]),
    *((kind, sample) for kind in DEMO_EVENTS for sample in DEMO[kind.name]),
]


@pytest.mark.parametrize(
    ("kind", "sample"), SAMPLES, ids=[f"{kind.__name__}-{n}" for n, (kind, _) in enumerate(SAMPLES)]
)
def test_the_document_of_every_event_is_as_it_was_recorded(
    kind: type[Event], sample: dict[str, Any]
) -> None:
    assert json.loads(json.dumps(kind.of(sample).as_dict())) == sample


def test_every_event_has_a_sample_and_a_name_of_one_union() -> None:
    assert [kind.name for kind in RUN_EVENTS] == list(dict.fromkeys(k.name for k in RUN_EVENTS))
    assert {kind.name for kind in RUN_EVENTS} == RUN.keys()
    assert {kind.name for kind in DEMO_EVENTS} == DEMO.keys()


def test_every_field_of_an_event_is_in_one_of_its_samples() -> None:
    for kinds, samples in ((RUN_EVENTS, RUN), (DEMO_EVENTS, DEMO)):
        for kind in kinds:
            recorded = {name for sample in samples[kind.name] for name in sample} - {"event"}
            assert {field.name for field in fields(kind)} == recorded, kind


def test_what_is_read_back_is_equal() -> None:
    for kind in RUN_EVENTS:
        event = event_from_dict(json.loads(json.dumps(RUN[kind.name][0])))
        assert type(event) is kind
        assert event_from_dict(event.as_dict()) == event


@pytest.mark.parametrize(
    "document",
    [None, 7, "batch", [], {}, {"event": "unheard"}, {"event": []}, {"event": "batch", "epoch": 1}],
)
def test_what_is_no_event_of_ours_is_none(document: object) -> None:
    assert event_from_dict(document) is None


def test_fields_of_a_newer_version_are_passed_over() -> None:
    event = event_from_dict(BATCH | {"colour": "red"})
    assert event is not None
    assert event.as_dict() == BATCH


def test_an_event_can_not_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        ViewsLoaded(("sales",), 1, 0.5).txn = 2  # type: ignore[misc]
    assert RunStopped.name == "stopped"


# -- no strings -----------------------------------------------------------------------------------


def matches_by_string(tree: ast.AST) -> list[int]:
    """Lines that look an event's name up in a dictionary, or make a dictionary that has one."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(slice=ast.Constant("event")):
                found.append(node.lineno)
            case ast.Call(func=ast.Attribute(attr="get" | "pop"), args=[ast.Constant("event"), *_]):
                found.append(node.lineno)
            case ast.Dict(keys=keys):
                found += [key.lineno for key in keys if _is_event(key)]
            case ast.Compare(left=left, comparators=others):
                found += [each.lineno for each in (left, *others) if _is_event(each)]
    return found


def _is_event(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "event"


@pytest.mark.parametrize(
    "code",
    [
        'if event["event"] == "batch": pass',
        'event.get("event")',
        'tell({"event": "batch"})',
        '"event" in told',
    ],
)
def test_a_match_by_string_is_found(code: str) -> None:
    assert matches_by_string(ast.parse(code)) == [1]


def test_no_module_matches_events_by_strings() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        for line in matches_by_string(ast.parse(path.read_text("utf-8")))
    }
    # Where the form of programs is made and read back; and a line of the log, which has four fields.
    allowed = {"run_events.py", "reports/run_log.py"}
    assert {each.split(":")[0] for each in found} == allowed, found
