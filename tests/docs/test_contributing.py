"""What CONTRIBUTING.md says can be done: its commands run, its targets and files exist."""

from __future__ import annotations

import re
from pathlib import Path

from docs.document import Reader, blocks
from docs.test_workflows import targets
from docsite.linking import problems_in

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
TEXT = PAGE.read_text("utf-8")


def test_a_newcomers_commands_run_without_java_or_a_server(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    reader.read(PAGE)
    assert len(reader.commands) >= 5


def test_what_is_not_run_says_why() -> None:
    assert [len(b.reason) > 20 for b in blocks(PAGE) if b.reason is not None] == [True]


def test_every_target_that_is_named_exists() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", TEXT)) | set(re.findall(r"^make (\w+)", TEXT, re.M))
    assert {"check", "test", "test-long", "release", "words"} <= named
    assert named - targets() == set()


def test_every_file_and_folder_that_is_named_exists() -> None:
    named = set(re.findall(r"`((?:src|tests|docs|tools)/[\w/.-]+)`", TEXT))
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_link_leads_somewhere() -> None:
    assert list(problems_in(PAGE, ROOT)) == []
