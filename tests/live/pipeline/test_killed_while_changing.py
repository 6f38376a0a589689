"""A run that is killed right after the views have taken a schema change, with rows from before it not shown yet."""

from __future__ import annotations

import time

import pytest

from viewkeeper.live import group_work
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PATIENCE_SECONDS = 600


class Killed(BaseException):
    """The process is gone, as far as this one can play that."""


def killed_at(name: str):
    def failpoint(passed: str) -> None:
        if passed == name:
            raise Killed

    return failpoint


CHANGES = {
    "renamed table": (
        "ALTER TABLE things RENAME TO items",
        "INSERT INTO items VALUES (5, 'after')",
    ),
    "renamed column": (
        "ALTER TABLE things RENAME COLUMN label TO title",
        "INSERT INTO things (k, title) VALUES (5, 'after')",
    ),
}


def run_to_its_death(shop, source: str, altered: str, written: str, patch) -> None:
    with Keeper.open(shop.folder, allow_setup=True) as keeper, keeper.pipeline() as pipeline:
        pipeline.load()
        patch.setattr(group_work, "failpoint", killed_at("schema-taken"))
        with pipeline.paused():
            shop.run(source, "INSERT INTO things VALUES (4, 'before')", altered, written)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            pipeline.cycle(0.2)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("source", ["shop", "crm", "geo"])
def test_no_row_that_waited_before_the_change_is_lost(
    shop, running_spark, monkeypatch, source, change
):
    altered, written = CHANGES[change]
    shop.run(
        source,
        "CREATE TABLE things (k BIGINT PRIMARY KEY, label VARCHAR(20))",
        "INSERT INTO things VALUES (1, 'one')",
    )
    shop.write_view("kept", f"SELECT k, label FROM {source}.things")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        run_to_its_death(shop, source, altered, written, patch)
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
        assert all(audit.is_equal for audit in keeper.audit())
        found = keeper.warehouse().read_arrow("kept").to_pylist()
    assert sorted(row["k"] for row in found) == [1, 4, 5]
