"""``status --check``: why not all is well."""

from __future__ import annotations

import copy
import datetime as dt
from types import SimpleNamespace

import pytest

from viewkeeper.reports.health import source_verdict
from viewkeeper.reports.status import Observed, last_audit, problems_of, status_of

WELL = {
    "state": "running",
    "approvals": [],
    "sources": {"shop": {"state": "ok", "behind_seconds": 0.5}},
    "views": {
        "sales": {
            "error": None,
            "differs": False,
            "is_late": False,
            "waits_for": None,
            "freshness_seconds": 0.5,
        }
    },
}
CHANGE = {
    "id": "7", "source": "shop", "relation": "orders", "status": "pending", "views": ["sales"],
}  # fmt: skip


def test_nothing_is_said_when_all_is_well():
    assert problems_of(WELL) == []


@pytest.mark.parametrize(
    ("place", "news", "words"),
    [
        ((), {"state": "stopped"}, "not running: stopped"),
        ((), {"state": "waiting"}, "not running: waiting"),
        ((), {"state": "waiting", "approvals": [CHANGE]}, "--approve 7"),
        (("sources", "shop"), {"state": "behind", "behind_seconds": 200}, "200 s behind"),
        (("sources", "shop"), {"state": "slot-lost"}, "slot-lost"),
        (("views", "sales"), {"error": {"message": "gone"}}, "gone"),
        (("views", "sales"), {"differs": True}, "differs"),
        (("views", "sales"), {"is_late": True, "freshness_seconds": 90}, "90 s behind"),
    ],
)
def test_each_trouble_is_said_once(place, news, words):
    found = copy.deepcopy(WELL)
    part = found
    for name in place:
        part = part[name]
    part |= news
    (problem,) = problems_of(found)
    assert words in problem


def test_a_view_that_waits_for_a_word_is_not_called_late_as_well():
    found = copy.deepcopy(WELL) | {"state": "waiting", "approvals": [CHANGE]}
    found["views"]["sales"] |= {"is_late": True, "waits_for": "7"}
    (problem,) = problems_of(found)
    assert "waits for your word" in problem


# -- the document ---------------------------------------------------------------------------------

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
OK = {"state": "ok", "lag_seconds": 0.0}


def ago(seconds: float) -> str:
    return (NOON - dt.timedelta(seconds=seconds)).isoformat()


def observed(standing: dict, looks: dict | None = None, **run: object) -> Observed:
    """Two views over one source, as one entry of a ledger has them."""
    definition = SimpleNamespace(has_ended=False, rebuilt=None)
    view = SimpleNamespace(
        positions={"shop": {"seq": 7}}, definition=definition, definition_version=1, incarnation=1
    )
    latest = SimpleNamespace(
        shown_views={"frozen": view, "moving": view},
        positions={"shop": {"seq": 7}},
        committed_at=NOON,
        last_txn=7,
        epoch=3,
    )
    told = {"state": "running", "views": {}, "standing": standing} | run
    return Observed(told, latest, {"shop": OK} if looks is None else looks, {}, NOON)  # type: ignore[arg-type]


def fresh(seen: Observed) -> dict[str, float | None]:
    return {name: view["freshness_seconds"] for name, view in status_of(seen)["views"].items()}


def test_what_one_view_does_not_show_is_no_lag_of_another_over_the_same_source():
    late = {"views": {"frozen": ago(600), "moving": None}, "sources": {"shop": ago(600)}}
    found = status_of(observed(late))
    assert fresh(observed(late)) == {"frozen": 600.0, "moving": 0.0}
    assert (found["sources"]["shop"]["state"], found["sources"]["shop"]["behind_seconds"]) == (
        "behind",
        600.0,
    )
    assert [view["is_late"] for view in found["views"].values()] == [True, False]


def test_what_has_not_reached_the_run_is_a_lag_of_every_view_over_the_source():
    well = {"views": {"frozen": None, "moving": None}, "sources": {}}
    assert fresh(observed(well, {"shop": OK | {"lag_seconds": 90.0}})) == {
        "frozen": 90.0,
        "moving": 90.0,
    }
    unseen = {"state": "unreachable", "lag_seconds": None, "unseen_seconds": 20.0, "error": {}}
    assert fresh(observed(well, {"shop": unseen})) == {"frozen": 20.0, "moving": 20.0}
    assert fresh(observed(well, state="stopped")) == {"frozen": None, "moving": None}


def test_a_periodic_view_and_its_source_may_wait_for_the_period():
    late = {"views": {"frozen": ago(300), "moving": None}, "sources": {"shop": ago(300)}}
    views = {"frozen": {"period_seconds": 3600.0}}
    found = status_of(observed(late, views=views))
    assert (found["sources"]["shop"]["state"], found["views"]["frozen"]["is_late"]) == ("ok", False)
    assert source_verdict(found["sources"]["shop"], 3600.0) == "good"
    assert source_verdict(found["sources"]["shop"], 0.0) == "bad"


@pytest.mark.parametrize(
    ("audits", "verdict"),
    [
        ([None, None], None),
        ([{"verdict": "different", "at": "1"}, {"verdict": "equal", "at": "2"}], "equal"),
        ([{"verdict": "different", "at": "3"}, {"verdict": "equal", "at": "2"}], "different"),
        ([{"verdict": "running"}, {"verdict": "equal", "at": "2"}], "running"),
        ([{"verdict": "different", "at": "3", "incarnation": 4}, None], None),  # filled again since
        ([{"verdict": "different", "at": "3", "incarnation": 5}, None], "different"),
    ],
)
def test_the_newest_audit_of_the_view_as_it_is_filled_counts(audits, verdict):
    found = last_audit(SimpleNamespace(incarnation=5), *audits)
    assert (found and found["verdict"]) == verdict
