"""Ratios between two revisions are taken within a round, and a round that lacks one of them does not count."""

from __future__ import annotations

import pytest
from former import compared


def _run(code: str, number: int, seconds: float) -> dict:
    streams = [
        {"stream": "warm", "updates": 10, "seconds": 99.0},
        {"stream": "100", "updates": 100, "seconds": seconds},
    ]
    measurement = {"load_seconds": 1.0, "streams": streams, "freshness": None}
    return {"code": code, "round": number, "view": "join", "measurement": measurement}


def test_the_ratio_is_the_median_of_the_rounds_own_ratios():
    runs = [
        *(_run("before", 0, 2.0), _run("now", 0, 1.0)),
        *(_run("now", 1, 10.0), _run("before", 1, 30.0)),
        *(_run("before", 2, 1.0), _run("now", 2, 4.0)),
    ]
    found = compared(runs)["join: 100 updates"]
    assert (found["least"], found["ratio"], found["most"]) == (0.25, pytest.approx(2.0), 3.0)


def test_a_round_without_its_counterpart_and_the_warm_up_do_not_count():
    found = compared([_run("before", 0, 2.0), _run("now", 0, 1.0), _run("now", 1, 500.0)])
    assert set(found) == {"join: load", "join: 100 updates"}
    assert found["join: 100 updates"]["most"] == 2.0
