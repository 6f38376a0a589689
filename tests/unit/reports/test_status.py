"""``status --check``: why not all is well."""

from __future__ import annotations

import copy

import pytest

from viewkeeper.reports.status import problems_of

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
