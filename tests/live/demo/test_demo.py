"""``viewkeeper demo`` as its users start it: it ends by itself, came out right, and left nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("demo")]

# A machine that is busy with other tests is slow; how long it takes is no matter here.
PATIENCE_SECONDS = 900
LEFT_SECONDS_MAX = 120


class Demo:
    """A demo in its own process, with a folder for all its temporary files."""

    def __init__(self, scratch: Path, *options: str, **environment: str) -> None:
        self.scratch = scratch
        scratch.mkdir(exist_ok=True)
        scratch.chmod(0o755)  # the servers run under an account of their own
        self.process = subprocess.Popen(
            [sys.executable, "-m", "viewkeeper", "demo", "--headless", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(scratch)} | environment,
        )

    def ended(self) -> tuple[int, list[str], str]:
        output, errors = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, output.splitlines(), errors

    def processes(self) -> list[str]:
        """Every process on this machine that has the demo's folder in its words or works in it."""
        entries = [e for e in Path("/proc").iterdir() if e.name.isdigit()]
        return [
            told
            for entry in entries
            if int(entry.name) != os.getpid() and str(self.scratch) in (told := _told_of(entry))
        ]

    def assert_nothing_is_left(self) -> None:
        """Whatever ends with it may take a moment longer on a machine that is busy."""
        deadline = time.monotonic() + LEFT_SECONDS_MAX
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.processes() == []
        assert list(self.scratch.iterdir()) == []


def _told_of(entry: Path) -> str:
    try:
        words = (entry / "cmdline").read_bytes() + b" " + (entry / "environ").read_bytes()
        # A server's own processes rename themselves, and still stand in its folder.
        return f"{words.decode(errors='replace')} {(entry / 'cwd').readlink()}"
    except OSError:
        return ""


@pytest.fixture
def scratch():
    # Root lends the servers another account, and pytest's own folders are for its user alone: each
    # pytest that starts on this machine makes them so again.
    with tempfile.TemporaryDirectory(prefix="viewkeeper-demo-test-") as folder:
        yield Path(folder)


def test_the_demo_tells_its_story_to_the_end(scratch):
    demo = Demo(scratch, "--seconds", "8", "--json")
    code, lines, errors = demo.ended()
    assert (code, errors) == (0, ""), lines[-1]
    events = [json.loads(line) for line in lines]
    by_kind = {event["event"]: event for event in events}
    naive, sweep = by_kind["anomaly"]["protocols"]
    assert (naive["is_good"], sweep["level"]) == (False, "complete")
    assert not all(state["right"] for state in naive["states"])
    assert by_kind["killed"]["signal"] == 9
    assert by_kind["resumed"]["pid"] != by_kind["killed"]["pid"]
    assert by_kind["resumed"]["goes_on_after"] == by_kind["killed"]["transactions"]
    settled = by_kind["settled"]
    assert settled["transactions"] == settled["committed"] > 0
    assert by_kind["dashboard"]["url"].startswith("http://127.0.0.1:")
    summary = events[-1]
    assert summary["event"] == "summary"
    assert summary["audits"] == {"addresses": "equal", "referrals": "equal", "sales": "equal"}
    assert all(
        view["rows"] == summary["rows"][view["view"]] for view in by_kind["audited"]["views"]
    )
    assert len(summary["next"]) == 3
    demo.assert_nothing_is_left()


@pytest.mark.parametrize("moment", ["began", "sources_ready", "loaded"])
def test_interrupted_it_leaves_nothing_behind(scratch, moment):
    demo = Demo(scratch, "--json")
    assert demo.process.stdout is not None
    for line in demo.process.stdout:
        if json.loads(line)["event"] == moment:
            break
    # Twice, as impatient people do.
    for _ in range(2):
        demo.process.send_signal(signal.SIGINT)
    code, _, errors = demo.ended()
    assert (code, errors) == (130, "Interrupted.\n")
    demo.assert_nothing_is_left()


def test_without_java_it_says_so_before_anything_is_started(scratch):
    code, lines, errors = Demo(scratch, JAVA_HOME=str(scratch / "nowhere")).ended()
    assert code == 2
    assert "there is no Java for Spark to run on [java-missing]" in errors
    assert not any("starting" in line for line in lines)


def test_a_folder_that_is_not_empty_is_not_taken(scratch, tmp_path):
    (tmp_path / "mine").write_text("")
    code, _, errors = Demo(scratch, "--keep", str(tmp_path)).ended()
    assert code == 2
    assert "[folder-not-empty]" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
