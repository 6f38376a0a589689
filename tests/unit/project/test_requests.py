"""Requests to a running keeper: files that are answered, refused, left alone, or given up."""

from __future__ import annotations

import json

import pytest

from viewkeeper.errors import UsageError, ViewkeeperError, WarehouseError
from viewkeeper.project.requests import DONE, FAILED, FOLDER, REBUILD, TAKEN, Request, Requests


def answering(requests: Requests, status: str, answer: dict):
    """A run that takes what it finds when whoever asks next waits."""

    def pause(seconds: float) -> None:
        for request in requests.waiting():
            requests.answer(request, status, answer)

    return pause


def test_an_answer_reaches_who_asked_and_nothing_is_left(tmp_path):
    requests = Requests(tmp_path)
    request = Request(REBUILD, ("sales",))
    told = requests.ask_and_wait(
        request, timeout_seconds=5, pause=answering(requests, DONE, {"views": ["sales"]})
    )
    assert told == {"views": ["sales"]}
    assert list((tmp_path / FOLDER).iterdir()) == []
    # The run may be late: then nobody waits any more, and nothing comes back.
    requests.answer(request, DONE, {})
    assert requests.waiting() == []


def test_an_error_of_the_run_is_raised_where_it_was_asked_for(tmp_path):
    requests = Requests(tmp_path)
    error = UsageError("unknown-view", "the project has no view x", hint="name another").as_dict()
    with pytest.raises(ViewkeeperError) as caught:
        requests.ask_and_wait(
            Request(REBUILD, ("x",)), timeout_seconds=5, pause=answering(requests, FAILED, error)
        )
    assert (caught.value.code, caught.value.hint) == ("unknown-view", "name another")


def test_nobody_answers_or_not_in_time(tmp_path):
    requests = Requests(tmp_path)
    with pytest.raises(WarehouseError, match="request-not-taken"):
        requests.ask_and_wait(
            Request(REBUILD, ("x",)), timeout_seconds=0, pause=lambda seconds: None
        )
    with pytest.raises(UsageError, match="request-not-done"):
        requests.ask_and_wait(
            Request(REBUILD, ("x",)),
            timeout_seconds=0.01,
            pause=answering(requests, TAKEN, {}),
        )


def test_what_is_no_request_is_left_alone(tmp_path):
    requests = Requests(tmp_path)
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "broken.json").write_text("{")
    (folder / "other.json").write_text(
        json.dumps({"kind": REBUILD, "views": ["x"], "id": "../../x"})
    )
    (folder / "more.json").write_text(
        json.dumps({"views": [], "kind": "x", "id": "more", "new": 1})
    )
    assert requests.waiting() == []
    taken = Request(REBUILD, ("x",), status=TAKEN)
    requests.put(taken)
    # Taken by a run that died: the next one does it.
    assert requests.waiting() == [taken]
