"""Schema changes on their way into the ledger and back."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from unit.engine.small_group import renamed_column
from viewkeeper.engine.stored_changes import changes_to_json, stored_changes

CHANGE = renamed_column("s", 4)


def read_back(*changes):
    kept = json.loads(json.dumps(changes_to_json(changes)))
    views = {"A": SimpleNamespace(taken=kept), "B": SimpleNamespace(taken=[])}
    return stored_changes(SimpleNamespace(views=views))


@pytest.mark.parametrize(
    "change",
    [
        CHANGE,
        replace(CHANGE, after=None, renamed_to="q"),
        replace(CHANGE, before=None, rewrites=True),
        replace(CHANGE, rewrites=True, skips=True),
    ],
)
def test_a_change_is_read_back_as_it_was(change):
    assert read_back(change) == {"A": (change,)}


def test_changes_keep_their_order_and_views_without_any_are_left_out():
    other = replace(CHANGE, source="t", relation="q")
    assert read_back(CHANGE, other) == {"A": (CHANGE, other)}
