"""Files beside the project that can't be written: said once, and no reason to end a run."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from event_samples import run_event
from viewkeeper.cli.run import Telling
from viewkeeper.errors import UsageError
from viewkeeper.live import json_files
from viewkeeper.live.evolution_log import EvolutionLog
from viewkeeper.live.json_files import read_json, write_aside, write_json
from viewkeeper.project import requests as requests_module
from viewkeeper.project.requests import DONE, FOLDER, REBUILD, Request, Requests
from viewkeeper.reports.run_log import RunLog
from viewkeeper.reports.run_state import FILE, RunState


@pytest.fixture
def full(tmp_path, monkeypatch):
    """A folder on a disk that is full: a real one where we may mount it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True
        ).returncode
    )
    if not mounted:
        monkeypatch.setattr(Path, "write_text", _full)
        yield folder
        return
    (folder / ".viewkeeper" / "requests").mkdir(parents=True)
    try:
        with suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_run_goes_on_without_its_state_file_and_says_so_once(full, caplog):
    with RunState(full, {}) as state:
        for _ in range(3):
            state.on_event(run_event("loaded"))
    assert read_json(full / FILE) == {}
    assert [path.name for path in (full / ".viewkeeper").glob("*.new")] == []
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "No space left" in warned[0].getMessage()


def test_when_there_is_room_again_it_is_written_and_the_next_failure_is_news(
    tmp_path, monkeypatch, caplog
):
    path = tmp_path / "told.json"
    with monkeypatch.context() as patched:
        patched.setattr(json_files, "write_json", _full)
        assert not write_aside(path, {})
    assert write_aside(path, {"a": 1})
    monkeypatch.setattr(json_files, "write_json", _full)
    assert not write_aside(path, {})
    assert read_json(path) == {"a": 1}
    assert len(caplog.records) == 2


def test_a_request_that_can_not_be_answered_ends_no_run(tmp_path, monkeypatch):
    requests = Requests(tmp_path)
    request = Request(REBUILD, ("v",))
    requests.put(request)
    monkeypatch.setattr(json_files, "write_json", _full)
    requests.answer(request, DONE, {})
    monkeypatch.setattr(requests_module, "FORGOTTEN_SECONDS", -1.0)
    monkeypatch.setattr(Path, "unlink", _full)
    requests.forget_old()


def test_who_asks_is_told_that_the_request_can_not_be_written(full):
    with pytest.raises(UsageError, match="can-not-write"):
        Requests(full).ask_and_wait(Request(REBUILD, ("v",)), timeout_seconds=5)
    assert list((full / FOLDER).glob("*")) == []


def test_a_schema_change_is_taken_though_it_can_not_be_noted(tmp_path, monkeypatch):
    log = EvolutionLog(tmp_path)
    monkeypatch.setattr(json_files, "write_json", _full)
    log._changes["1"] = {"id": "1", "status": "pending"}
    log._write()
    assert log.changes()[0]["id"] == "1"


def test_a_log_that_can_not_be_written_says_so_once(full, capsys):
    with RunLog(str(full / "run.log")) as log:
        for number in range(3):
            log.on_event(run_event("warning", message="x" * 100_000, id=str(number)))
    told = capsys.readouterr().err
    assert told.count("can't write the log") <= 1
    assert "Traceback" not in told


def test_output_on_a_full_disk_ends_no_run_but_a_closed_pipe_does(capsys):
    telling = Telling()
    heard: list[str] = []
    telling.listeners = [_full, lambda event: heard.append(event.name)]
    for _ in range(2):
        telling.on_event(run_event("loaded"))
    assert heard == ["loaded", "loaded"]
    assert capsys.readouterr().err.count("No space left") == 1

    def closed(event: object) -> None:
        raise BrokenPipeError

    telling.listeners = [closed]
    with pytest.raises(BrokenPipeError):
        telling.on_event(run_event("loaded"))


def test_a_draft_of_what_could_not_be_written_is_not_left(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", _full)
    with pytest.raises(OSError, match="No space"):
        write_json(tmp_path / "a.json", {})
    assert list(tmp_path.iterdir()) == []
