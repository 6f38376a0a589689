"""The story with actors in place of servers and processes: what it says when something is wrong."""

from __future__ import annotations

import pytest

import event_samples
from viewkeeper.demo import story
from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.run_events import event_from_dict


def batch(epoch: int, txn: int) -> dict:
    return event_samples.BATCH | {"epoch": epoch, "txn": txn, "asked": {}}


LOAD = [event_samples.RUN[name][0] for name in ("loading", "relation_read", "loaded")]


# The reverse order of the beginnings.
ENDINGS = ["killed run --allow-setup", "writers stopped", "killed ui --port 0", "servers stopped"]


class Stage:
    """What the actors do, and what was done to them."""

    def __init__(self) -> None:
        self.committed = {"shop": 10, "crm": 5, "depot": 5}
        self.first_run = [*LOAD, batch(2, 5)]
        self.second_run = [batch(3, 10), batch(4, 20)]
        self.audit = [
            {"ok": True, "views": [{"view": "sales", "verdict": "equal", "rows": 3, "txn": 20}]}
        ]
        self.done: list[str] = []


@pytest.fixture
def stage(monkeypatch):
    stage = Stage()

    class Servers:
        def __init__(self, interruption):
            pass

        def urls(self):
            return {"shop": "postgresql://h/shop", "crm": "postgresql://h/crm"}

        def stop(self):
            stage.done.append("servers stopped")

    class Writers:
        def __init__(self, scene):
            self.committed = stage.committed

        def start(self):
            stage.done.append("writers started")

        def stop(self):
            stage.done.append("writers stopped")

    class Command:
        pid = 1

        def __init__(self, scene, *words):
            self.words = words
            scripts = {"audit": stage.audit, "ui": [{"event": "dashboard", "url": "here"}]}
            runs = stage.first_run if "--allow-setup" in words else stage.second_run
            self.script = list(scripts.get(words[0], runs))

        def next_event(self, wait_seconds):
            return event_from_dict(self.next_document(wait_seconds))

        def next_document(self, wait_seconds):
            if not self.script:
                raise ViewkeeperError("command-failed", "it ended")
            return self.script.pop(0)

        def kill(self):
            stage.done.append(f"killed {' '.join(self.words)}")

        def stop(self):
            stage.done.append(f"stopped {' '.join(self.words)}")

    for actor in (Servers, Writers, Command):
        monkeypatch.setattr(story, actor.__name__, actor)
    return stage


def told(keep=None):
    events: list[dict] = []
    good = story.tell(lambda event: events.append(event.as_dict()), seconds=0, keep=keep)
    return good, events


def test_all_is_well_when_every_commit_is_a_state_and_the_audit_is_equal(stage):
    good, events = told()
    assert good
    assert events[-1]["ok"]
    assert events[-1]["audits"] == {"sales": "equal"}
    # Everything was ended before the summary said so, in the reverse order of its beginning.
    assert stage.done[-4:] == ENDINGS


def test_a_state_too_many_is_no_success(stage):
    stage.second_run[-1] = batch(4, 21)
    good, events = told()
    assert not good
    assert not next(event for event in events if event["event"] == "settled")["ok"]


def test_a_different_audit_is_no_success(stage):
    stage.audit[0] = {"ok": False, "views": [{"view": "sales", "verdict": "different", "rows": 3}]}
    good, events = told()
    assert not good
    assert events[-1]["audits"] == {"sales": "different"}


def test_when_a_command_fails_everything_is_ended_and_nothing_kept(stage, tmp_path):
    stage.second_run.clear()
    with pytest.raises(ViewkeeperError):
        told(tmp_path / "kept")
    assert stage.done[-4:] == ENDINGS
    assert list(tmp_path.iterdir()) == []


def test_a_kept_project_is_whole_and_clean(stage, tmp_path):
    good, events = told(tmp_path / "kept")
    assert good
    assert events[-1]["kept"] == str(tmp_path / "kept")
    found = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert found == ["depot.db", "viewkeeper.toml", "views"]


def test_a_folder_in_use_is_not_taken(stage, tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError):
        told(tmp_path)
    assert stage.done == []
