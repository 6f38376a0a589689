"""How a run that was to catch up ends: it says ``caught_up`` only when it has."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from viewkeeper.live.standing import Standing
from viewkeeper.project.config import read_project
from viewkeeper.project.running import Running


class FakePipeline:
    """Of one source, which has committed something that is never applied unless ``applies``."""

    new_views: tuple[str, ...] = ()
    views: dict[str, Any] = {}  # noqa: RUF012
    groups: tuple[Any, ...] = ()
    waiting_for_decision = None
    writer = SimpleNamespace(latest=SimpleNamespace(last_txn=7, epoch=1))

    def __init__(self, stop: threading.Event, *, applies: bool, cycles: int) -> None:
        self._stop, self._applies, self._cycles = stop, applies, cycles

    def load(self, *_: object, stopping: Any) -> None: ...

    def standing(self) -> Standing:
        return Standing()

    def committed_now(self) -> dict[str, object]:
        return {}

    def paintings(self) -> list[dict[str, Any]]:
        return []

    def cycle(self, wait_seconds: float) -> None:
        self._cycles -= 1
        if self._cycles <= 0:
            self._stop.set()

    def has_applied(self, targets: object) -> bool:
        return self._applies


def ended(tmp_path, *, applies: bool, cycles: int, for_seconds: float | None = None):
    (tmp_path / "viewkeeper.toml").write_text('[sources.one]\nurl = "sqlite:///one.db"\n')
    stop, events = threading.Event(), []
    pipeline = FakePipeline(stop, applies=applies, cycles=cycles)
    keeper = SimpleNamespace(
        config=read_project(tmp_path),
        bad_views={},
        stopped_views={},
        writer=lambda: contextlib.nullcontext(pipeline.writer),
        pipeline_of=lambda *_, **__: contextlib.nullcontext(pipeline),
    )
    running = Running(keeper, events.append, stop)
    report = running.run(until_caught_up=True, for_seconds=for_seconds)
    return report, [e.name for e in events if e.name not in ("standing", "merge")]


@pytest.mark.parametrize("for_seconds", [None, 0.0])
def test_one_that_was_stopped_before_does_not_say_that_it_has_caught_up(tmp_path, for_seconds):
    report, told = ended(tmp_path, applies=False, cycles=2, for_seconds=for_seconds)
    assert told == ["ready", "stopped"]
    assert not report.is_caught_up


def test_one_that_was_stopped_while_it_loaded_does_not_either(tmp_path, monkeypatch):
    monkeypatch.setattr(FakePipeline, "load", lambda self, *_, stopping: self._stop.set())
    report, told = ended(tmp_path, applies=True, cycles=2)
    assert told == ["stopped"]
    assert not report.is_caught_up


def test_one_that_has_says_so(tmp_path):
    report, told = ended(tmp_path, applies=True, cycles=2)
    assert told == ["ready", "caught_up"]
    assert report.is_caught_up
