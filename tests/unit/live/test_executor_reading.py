"""When executors read a relation, and how a source's error comes back from one."""

from __future__ import annotations

import json
import pickle

import pytest

from viewkeeper.errors import SourceError
from viewkeeper.live.reading.executor_reading import ROWS_MIN, PartReader, parts_for, source_error


def test_small_or_unknown_relations_are_read_here():
    assert parts_for(None, 8) == 0
    assert parts_for(ROWS_MIN - 1, 8) == 0


def test_there_are_parts_for_every_task_and_none_is_tiny():
    assert parts_for(10_000_000, 4) == 8
    assert parts_for(ROWS_MIN, 100) == 2


def test_a_password_is_not_in_what_a_reader_shows():
    reader = PartReader("orders", ("id",), 2, {"source": {"url": "postgresql://a:secret@b/c"}})
    assert "secret" not in repr(reader)
    assert pickle.loads(pickle.dumps(reader)) == reader


def test_an_error_of_the_source_survives_sparks_account_of_it():
    there = SourceError("cut-lost", "a cut is gone", source="shop", retryable=True, detail="kill")

    class Gone(PartReader):
        def _read(self, part):
            raise there

    with pytest.raises(RuntimeError) as caught:
        list(Gone("orders", ("id",), 1, {})(0))
    text = f"Job aborted: Task 0 failed\nRuntimeError: {caught.value}\n\tat java.lang.Thread"
    found = source_error(text, "shop")
    assert found.as_dict() == there.as_dict()


def test_any_other_failure_names_the_source_and_what_executors_need():
    found = source_error(
        "Job aborted\nModuleNotFoundError: No module named 'viewkeeper'\n at x", "shop"
    )
    assert not found.retryable
    assert "No module named" in json.dumps(found.as_dict())
