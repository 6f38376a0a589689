"""What a run tells others, from whichever thread it comes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from event_samples import run_event
from viewkeeper.live.json_files import read_json, write_json
from viewkeeper.reports.run_state import FILE, RunState, read_run_state


def test_groups_tell_from_their_own_threads(tmp_path):
    """A schema change is told by its group while the run tells of batches: both must be written."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with RunState(tmp_path, {}) as state, ThreadPoolExecutor(8) as threads:

            def tell(number: int) -> None:
                for _ in range(40):
                    state.on_event(run_event("merge", groups=[number]))

            list(threads.map(tell, range(8)))
            assert read_run_state(tmp_path)["merge"]["groups"][0] in range(8)
    finally:
        sys.setswitchinterval(interval)
    assert read_run_state(tmp_path)["state"] == "stopped"


def test_a_run_that_is_refused_says_nothing_for_the_one_that_goes_on(tmp_path):
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            with RunState(tmp_path, {}) as first:
                first.on_event(run_event("loaded"))
                told = read_json(tmp_path / FILE) | {"pid": other.pid}
            write_json(tmp_path / FILE, told)
            with RunState(tmp_path, {}):
                assert read_run_state(tmp_path) == told
            assert read_run_state(tmp_path) == told
            with RunState(tmp_path, {}) as last:
                last.on_event(run_event("loaded"))  # it holds the lease: the other one is no more
                assert read_run_state(tmp_path)["pid"] == os.getpid()
        finally:
            other.kill()
    assert read_run_state(tmp_path)["state"] == "stopped"


def test_what_waits_for_a_word_is_not_forgotten_when_others_go_on(tmp_path):
    """The batch before the change is told after it, and other groups go on for days."""
    change = {"id": "7", "source": "shop", "statement": "ALTER …", "views": ["frozen"]}
    with RunState(tmp_path, {}) as state:
        state.on_event(run_event("loaded"))
        told = {"views": {"frozen": None}, "sources": {}}
        state.on_event(run_event("standing", **told, approvals=[change]))
        state.on_event(run_event("batch"))
        found = read_run_state(tmp_path)
        assert (found["state"], found["waiting"]) == ("waiting", change)
        state.on_event(run_event("standing", **told, approvals=[]))
        assert read_run_state(tmp_path)["state"] == "running"


def test_a_run_that_has_nothing_to_do_is_running(tmp_path):
    """Also after a source was away: no batch has to come first."""
    with RunState(tmp_path, {}) as state:
        assert read_run_state(tmp_path)["state"] == "starting"
        state.on_event(run_event("ready"))
        assert read_run_state(tmp_path)["state"] == "running"
        state.on_event(run_event("source_waiting"))
        state.on_event(run_event("ready"))
        assert read_run_state(tmp_path)["state"] == "running"


def test_what_was_wrong_with_a_view_goes_when_it_is_filled_again_or_taken_as_written(tmp_path):
    def stopped() -> set[str]:
        return set(read_run_state(tmp_path)["stopped_views"])

    with RunState(tmp_path, {}) as state:
        state.on_event(run_event("views_stopped", views=["a", "b", "c"]))
        state.on_event(run_event("audited", view="a", verdict="different"))
        state.on_event(run_event("rebuilt", views=["a"]))
        assert stopped() == {"b", "c"}
        assert read_run_state(tmp_path)["audits"] == {}
        state.on_event(run_event("reloaded", stopped=["b"]))
        assert stopped() == {"b"}
