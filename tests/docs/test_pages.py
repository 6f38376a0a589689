"""Pages whose commands a reader types are run: README, quick start, tutorial, and what shows programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.document import RUNNABLE, Reader, blocks
from docsite.markdown import tokens_of

ROOT = Path(__file__).parents[2]

PAGES = ("README.md", "docs/quickstart.md", "docs/tutorial.md")
# Read like the others, and needs no Spark.
CONTRIBUTING = "CONTRIBUTING.md"


def read(page: str, folder: Path, before: tuple[str, ...] = ()) -> Reader:
    reader = Reader(folder)
    try:
        for line in before:
            reader.run(line)
        reader.read(ROOT / page)
    finally:
        if "server" in reader.names:
            reader.names["server"].stop()
    return reader


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, tmp_path: Path, running_spark) -> None:
    assert read(page, tmp_path).commands


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_programs_on_the_page_of_python_run(tmp_path: Path, running_spark) -> None:
    (tmp_path / "start").mkdir()
    reader = read("docs/howto/python.md", tmp_path, before=(f"viewkeeper init {tmp_path}/example",))
    assert reader.names["frame"].count() == reader.names["before"].count() > 0


def test_the_protocol_on_the_page_is_one(tmp_path: Path) -> None:
    from viewkeeper.simulator.generator import Shape, Size
    from viewkeeper.simulator.run import simulated

    read("docs/howto/new-protocol.md", tmp_path)
    names: dict[str, object] = {}
    exec((tmp_path / "my_protocol.py").read_text(), names)
    outcome = simulated(names["MyProtocol"], 1, Size(shape=Shape.CHAIN))
    assert outcome.is_good


def test_what_is_not_run_says_why() -> None:
    for page in (*PAGES, CONTRIBUTING):
        for block in blocks(ROOT / page):
            if block.language in RUNNABLE and block.reason is not None:
                assert len(block.reason) > 20, f"{page}: {block.text}"


def test_no_block_of_a_page_is_overlooked() -> None:
    """Every fence is in a language that the reader runs, or in one that is only shown."""
    for page in (*PAGES, CONTRIBUTING):
        fences = [t for t in tokens_of((ROOT / page).read_text("utf-8")) if t.type == "fence"]
        assert {fence.info for fence in fences} <= {*RUNNABLE, "text", "json", "ini", "yaml"}, page
        runnable = [fence.content for fence in fences if fence.info in RUNNABLE]
        assert runnable == [b.text for b in blocks(ROOT / page) if b.language in RUNNABLE], page
