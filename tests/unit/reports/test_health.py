"""Verdicts: the worst of run, freshness and audit."""

from __future__ import annotations

import pytest

from viewkeeper.reports.health import (
    Health,
    lag_verdict,
    of_approval,
    of_audit,
    of_freshness,
    of_run,
    seconds_of,
    worst,
)
from viewkeeper.reports.positions import position_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 s", 5), ("500ms", 0.5), ("500 ms", 0.5), ("2 minutes", 120), ("1.5 h", 5400), ("1 min", 60),
        ("10 sec", 10), ("3 seconds", 3), ("soon", None), ("5", None), ("", None), (None, None), ("5 fortnights", None),
    ],
)  # fmt: skip
def test_a_target_is_read_as_people_write_it(text, expected):
    assert seconds_of(text) == expected


@pytest.mark.parametrize(
    ("seconds", "target", "verdict"),
    [(0, None, "good"), (6, None, "warning"), (31, None, "bad"), (None, None, "idle"),
     (6, 10, "good"), (11, 10, "warning"), (31, 10, "bad"), (1, 0.5, "warning"), (2, 0.5, "bad")],
)  # fmt: skip
def test_a_lag_is_judged_against_its_target(seconds, target, verdict):
    assert lag_verdict(seconds, target) == verdict


def test_the_worst_counts_and_brings_its_reason():
    good, bad = Health("good", "fine"), Health("bad", "wrong rows")
    assert worst((good, bad, Health("warning", "late"))) is bad
    assert worst((good, Health("good", "also fine"))) is good


def test_what_each_of_the_three_says():
    assert of_run({"state": "running"}).verdict == "good"
    waiting = of_run({"state": "waiting", "waiting": {"message": "shop is away"}})
    assert (waiting.verdict, "shop is away" in waiting.reason) == ("bad", True)
    asked = of_run({"state": "waiting", "waiting": {"statement": "ALTER TABLE t DROP COLUMN c"}})
    assert (asked.verdict, "your word" in asked.reason) == ("bad", True)
    assert of_run({"state": "stopped"}).verdict == "idle"
    assert of_freshness(7, 5).verdict == "warning"
    assert of_freshness(None, 5).verdict == "good"
    assert of_audit({"verdict": "different", "txn": 9}).verdict == "bad"
    assert of_audit({"verdict": "equal", "txn": 9}).verdict == "good"
    assert of_audit({"verdict": "running"}).verdict == "good"
    assert of_audit(None).verdict == "good"


def test_a_schema_change_that_waits_is_a_red_mark_for_the_views_it_holds_up():
    change = {"source": "shop", "relation": "orders", "status": "pending", "statement": "ALTER …"}
    run = {"state": "waiting", "waiting": change}
    assert of_approval(change).verdict == "bad"
    assert "your word" in of_approval(change).reason
    assert "rejected" in of_approval(change | {"status": "rejected"}).reason
    assert of_approval(None).verdict == "good"
    # A view of another group moves on.
    assert of_run(run, view="elsewhere").verdict == "good"


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (None, "none yet"),
        ({"system": "7", "timeline": 1, "lsn": 0x1_0000_00FF, "item": 0}, "1/FF"),
        ({"file": "log.000007", "offset": 12345, "born": 1, "gtid": ""}, "log.000007 at 12,345"),
        ({"history": "abc", "seq": 1234, "tag": 5, "shapes": {}}, "change 1,234"),
    ],
)
def test_positions_are_told_without_their_marks(position, text):
    assert position_text(position) == text
