"""What a run's last words mean now."""

from __future__ import annotations

import datetime as dt

import pytest

from viewkeeper.reports.standing import (
    allowances,
    behind_seconds,
    freshness_seconds,
    kept_state,
    standing_in,
)

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


def ago(seconds: float) -> str:
    return (NOON - dt.timedelta(seconds=seconds)).isoformat()


STANDING = {"views": {"sales": ago(9), "names": None}, "sources": {"shop": ago(9)}, "approvals": []}


@pytest.mark.parametrize(
    ("view", "lags", "seconds"),
    [
        ("sales", [], 9.0),
        ("names", [], 0.0),
        ("names", [None, 4.0], 4.0),  # what has not reached the run, it can't know of
        ("sales", [4.0], 9.0),
        ("unkept", [4.0], None),
    ],
)
def test_a_view_is_as_fresh_as_the_oldest_that_it_does_not_show(view, lags, seconds):
    assert freshness_seconds(STANDING, view, NOON, lags) == seconds


@pytest.mark.parametrize(
    ("source", "lag", "seconds"),
    [
        ("shop", None, 9.0),
        ("shop", 4.0, 9.0),
        ("shop", 20.0, 20.0),
        ("crm", 4.0, 4.0),
        ("crm", None, None),
    ],
)
def test_a_source_is_as_far_ahead_as_it_says_or_the_run_knows(source, lag, seconds):
    assert behind_seconds(STANDING, source, lag, NOON) == seconds


def test_without_a_run_nothing_is_late():
    assert standing_in({"state": "running", "standing": STANDING}) == STANDING
    assert standing_in({"state": "stopped", "standing": STANDING}) == {}
    assert standing_in({"state": "never run"}) == {}


def test_a_change_that_waits_holds_up_its_own_views_alone():
    run = {
        "state": "waiting",
        "standing": STANDING | {"approvals": [{"id": "7", "views": ["sales"]}]},
    }
    assert kept_state(run, "sales") == "waits for approval"
    assert kept_state(run, "names") == "running"
    assert kept_state({"state": "waiting"}, "names") == "waiting"


def test_a_period_allows_its_sources_to_wait():
    run = {"views": {"slow": {"period_seconds": 300.0}, "quick": {"period_seconds": None}}}
    reads = {"slow": ["shop", "crm"], "quick": ["shop", "geo"], "unknown": ["geo"]}
    assert allowances(run, reads) == {"shop": 300.0, "crm": 300.0, "geo": 0.0}
