"""Errors carry the same fields wherever they are shown, and survive a process border."""

from __future__ import annotations

import pickle

import pytest

from viewkeeper.errors import (
    InvariantViolated,
    SourceError,
    UsageError,
    ViewkeeperError,
    WarehouseError,
    invariant,
)

EVERY_FAMILY = [
    UsageError("bad-sql", "the view can't be read", detail="line 1", hint="mend it"),
    SourceError("gone", "the source is gone", source="shop", retryable=True, hint="wait"),
    WarehouseError("held", "the warehouse is held", detail="by process 7"),
    InvariantViolated("a count is lost", detail="expected 2, found 1"),
]


def test_the_text_names_message_and_code_then_detail_then_hint():
    error = UsageError("bad-sql", "the view can't be read", detail="line 1", hint="mend it")
    assert str(error) == "the view can't be read [bad-sql]\nDetail: line 1\nHint: mend it"


def test_empty_fields_leave_no_empty_lines():
    assert (
        str(UsageError("bad-sql", "the view can't be read")) == "the view can't be read [bad-sql]"
    )


def test_a_dict_has_every_field_and_the_family():
    error = UsageError("bad-sql", "no", detail="line 1", hint="mend it")
    assert error.as_dict() == {
        "family": "usage",
        "code": "bad-sql",
        "message": "no",
        "detail": "line 1",
        "hint": "mend it",
    }


def test_a_source_error_says_which_source_and_whether_retrying_helps():
    error = SourceError("gone", "the source is gone", source="shop", retryable=True)
    assert error.as_dict()["source"] == "shop"
    assert error.as_dict()["retryable"] is True


def test_families_are_told_apart():
    assert [e.family for e in EVERY_FAMILY] == ["usage", "source", "warehouse", "internal"]


@pytest.mark.parametrize("error", EVERY_FAMILY, ids=lambda error: error.family)
def test_an_error_survives_pickling_with_all_its_fields(error: ViewkeeperError):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.as_dict() == error.as_dict()
    assert copy.args == error.args
    assert str(copy) == str(error)


def test_an_invariant_that_holds_is_silent_and_one_that_does_not_is_ours_to_mend():
    invariant([1], "not raised")
    with pytest.raises(InvariantViolated, match="a count is lost") as caught:
        invariant([], "a count is lost")
    assert "please report it" in caught.value.hint
