"""A view that is kept at a lower level than it declares is pointed out by the run that keeps it."""

from __future__ import annotations

import json

import pytest

from live.pipeline.test_rebuild import BackgroundRun, command
from viewkeeper.cli import execute

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_a_run_says_which_view_does_not_reach_its_level(tmp_path, running_spark, capsys):
    folder = tmp_path / "project"
    assert execute(["init", str(folder)]) == 0
    capsys.readouterr()
    share = "-- consistency: complete\nSELECT sum(o.quantity / 3) AS third FROM shop.orders o"
    (folder / "views" / "share.sql").write_text(share)
    with BackgroundRun(folder, allow_setup=True) as run:
        warning = run.await_event("warning")
        assert (warning["code"], warning["view"]) == ("level-not-reached", "share")
        assert "declared complete, kept at strong" in warning["message"]
        assert json.dumps(warning)
        run.await_event("loaded")
        _, found = command("status", "--project", str(folder))
        view = found["views"]["share"]
        assert (view["declared"], view["level"]) == ("complete", "strong")
        others = [v for name, v in found["views"].items() if name != "share"]
        assert all(v["declared"] == v["level"] for v in others)
