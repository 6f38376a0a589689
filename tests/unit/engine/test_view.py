"""A view as the runtime knows it: who keeps it, also when it is no longer what its user wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docsite.view_classes import example
from viewkeeper.engine.view import View
from viewkeeper.errors import UsageError
from viewkeeper.views import Level

KEYED = replace(example("join, all keys shown"), protocol="strobe", level=Level.STRONG)
UNKEYED = replace(example("join, keys left out"), protocol="strobe", level=Level.STRONG)


def test_a_view_is_kept_by_the_protocol_that_it_names():
    assert View(KEYED, "").choice.protocol == "strobe"
    with pytest.raises(UsageError, match="without the keys"):
        _ = View(UNKEYED, "").choice


def test_a_view_that_lost_its_keys_with_a_schema_change_is_kept_by_whoever_can():
    assert View(UNKEYED, "", origin="what was written").choice.protocol == "batched-sweep"
    # Its text is what was written: only a key under it is another one.
    assert View(UNKEYED, "", evolved={"effect": "untouched"}).choice.protocol == "batched-sweep"


def test_a_view_of_an_old_ledger_that_said_sweep_is_kept_as_it_was_where_sweep_can_not():
    """The word meant batched SWEEP: a ledger has it in the text and in the tree of a view that evolved."""
    grouped = replace(example("GROUP BY with COUNT, SUM, AVG"), protocol="sweep")
    assert View(grouped, "", origin="what was written").choice.protocol == "batched-sweep"
    linear = replace(example("join, keys left out"), protocol="sweep")
    kept = View(linear, "", origin="what was written").choice
    assert (kept.protocol, kept.level) == ("sweep", Level.COMPLETE)
