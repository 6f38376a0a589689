"""The demo's parts that need no server: the anomaly, the figures, and how they are told."""

from __future__ import annotations

import pytest

import event_samples
from event_samples import demo_event
from viewkeeper.cli import demo_narration
from viewkeeper.cli.demo_narration import Lines, Page
from viewkeeper.demo.anomaly import compared
from viewkeeper.demo.events import AnomalyPlayed
from viewkeeper.demo.figures import Figures
from viewkeeper.demo.scenery import ROWS, SOURCES, rows_to_load, script_of, write_scene
from viewkeeper.run_events import BatchCommitted


def batch(epoch: int, txn: int) -> BatchCommitted:
    changed = {"sales": {"inserted": 2, "deleted": 1}}
    asked = {"crm": {"queries": 3, "keys": 9, "rows": 7}}
    news = {"epoch": epoch, "txn": txn, "changed": changed, "asked": asked}
    return BatchCommitted.of(event_samples.BATCH | news)


def test_the_same_updates_are_wrong_under_naive_and_right_under_sweep():
    naive, sweep = compared()["protocols"]
    assert [state["right"] for state in naive["states"]] == [True, False, False, False]
    assert all(state["right"] for state in sweep["states"])
    assert (naive["level"], sweep["level"]) == ("none", "complete")


def test_a_batch_that_the_ledger_told_already_is_not_counted_twice():
    figures = Figures(SOURCES, txn=10, epochs=4, rows={"sales": 100})
    figures.add_batch(batch(epoch=4, txn=10))
    assert (figures.rows["sales"], figures.txn) == (100, 10)
    figures.add_batch(batch(epoch=5, txn=12))
    assert (figures.rows["sales"], figures.txn) == (101, 12)
    assert figures.queries == {"shop": 0, "crm": 6, "depot": 0}


def test_without_a_warehouse_there_is_nothing_to_take_stock_of(tmp_path):
    figures = Figures(SOURCES)
    figures.take_stock(tmp_path / "warehouse")
    assert figures.rows == {}


def test_the_scene_is_a_project_whose_load_is_known_beforehand(tmp_path):
    scene = write_scene(tmp_path, {"shop": "postgresql://h/shop", "crm": "postgresql://h/crm"})
    assert tuple(scene.urls) == SOURCES
    assert rows_to_load(scene, ["addresses"]) == ROWS["customers"] + ROWS["regions"]
    assert rows_to_load(scene, ["referrals"]) == ROWS["customers"]
    assert str(ROWS["orders"]) in script_of("shop")


STORY = [
    AnomalyPlayed.of(compared()) if name == "anomaly" else demo_event(name)
    for name in event_samples.DEMO
]


@pytest.mark.parametrize("telling", [Lines, Page])
@pytest.mark.parametrize("columns", ["80", "140"])
def test_the_story_is_told_to_its_end(telling, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(demo_narration, "REFRESHES_PER_SECOND", 1)
    with telling() as teller:
        for event in STORY:
            teller.on_event(event)
    text = " ".join(capsys.readouterr().out.split())
    for said in (
        "kill -9 11",
        "Resumed after 4.2 s",
        "nothing lost, nothing doubled",
        "sales equal (104 rows)",
        "1 of 1 views equal to their sources after a kill -9",
        "nothing was left behind",
        "wrong for good",
    ):
        assert said in text


def test_what_came_out_wrong_is_told_as_wrong(capsys):
    Lines().on_event(demo_event("settled", transactions=19, ok=False))
    assert "THAT IS WRONG" in capsys.readouterr().out
