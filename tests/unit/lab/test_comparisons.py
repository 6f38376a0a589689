"""``lab compare``: what was counted stands beside what the papers say."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as xml
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from viewkeeper.cli import execute
from viewkeeper.lab.comparisons import compare_merging, compare_rings, compare_sweep
from viewkeeper.lab.comparisons.compare_medwrap import MedwrapSection
from viewkeeper.lab.comparisons.compare_merging import MergingSection
from viewkeeper.lab.comparisons.comparing import SECTIONS
from viewkeeper.simulator.comparison import Measured, compared
from viewkeeper.simulator.engine.timing import Durations, Study, timed
from viewkeeper.simulator.rings.costs import RingCost, ring_costs
from viewkeeper.views.level import Level

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def two() -> Measured:
    """Two protocols instead of all."""
    return compared(("sweep", "eca"))


@pytest.fixture(autouse=True)
def _quick(two: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_sweep, "compared", lambda: two)


def told(words: str, capsys: Capture, expected: int = 0) -> Any:
    """The JSON document of a command."""
    code = execute([*shlex.split(words), "--json"])
    out = capsys.readouterr().out
    assert code == expected, out
    return json.loads(out)


@pytest.mark.thorough
def test_compare_tells_all_sections_and_draws_them_in_one_file(
    tmp_path: Path, capsys: Capture
) -> None:
    plot = tmp_path / "plot.svg"
    document = told(f"lab compare --plot {plot}", capsys)
    assert list(document) == [*SECTIONS, "plot"]
    assert document["plot"] == str(plot)
    titles = "".join(xml.parse(plot).getroot().itertext())
    assert "Deletions meanwhile" in titles
    assert "Rings: nothing happens" in titles
    assert "MEDWRAP: space" in titles
    assert execute(["lab", "compare"]) == 0
    text = capsys.readouterr().out
    assert "Queries per update" in text
    assert "Messages in each delay when nothing happens" in text
    assert "Questions that sources answer for one update" in text


@pytest.mark.thorough
def test_sweep_costs_what_its_table_says(capsys: Capture) -> None:
    sweep = told("lab compare --only sweep", capsys)["sweep"]
    assert sweep["levels"]["sweep"] == {
        "measured": "complete",
        "paper": "complete",
        "messages": "O(n)",
    }
    costs = [cost for cost in sweep["alone"] if cost["protocol"] == "sweep"]
    assert [cost["queries_per_update"] for cost in costs] == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", SECTIONS)
def test_one_section_can_be_chosen(name: str, tmp_path: Path, capsys: Capture) -> None:
    plot = tmp_path / "plot.svg"
    assert list(told(f"lab compare --only {name} --plot {plot}", capsys)) == [name, "plot"]
    titles = "".join(xml.parse(plot).getroot().itertext())
    assert ("Rings: " in titles, "MEDWRAP: " in titles) == (name == "rings", name == "medwrap")


def test_what_only_the_paper_says_is_dashed_in_its_protocols_colour(
    tmp_path: Path, capsys: Capture
) -> None:
    plot = tmp_path / "plot.svg"
    told(f"lab compare --only medwrap --plot {plot}", capsys)
    by_panel = [
        [curve.attrib["class"] for curve in panel.iter() if curve.tag.endswith("polyline")]
        for panel in xml.parse(plot).getroot()
        if panel.tag.endswith("}g")
    ]
    # Questions by number of sources: mre's coincides with its formula, the two others are apart.
    assert by_panel[0] == [
        "line0 curve",
        "line0 curve dashed",
        "line1 curve",
        "line2 curve",
        "line2 curve dashed",
    ]


def test_a_section_that_does_not_exist_is_refused(capsys: Capture) -> None:
    assert told("lab compare --only swoop", capsys, expected=2)["error"]["code"] == "command-line"


def test_ring_latencies_stand_beside_2n_and_n(capsys: Capture) -> None:
    costs = told("lab compare --only rings", capsys)["rings"]["costs"]
    one = [cost for cost in costs if cost["case"] == "one"]
    for cost in one:
        n = cost["sources"]
        # In both a clock sees 2n + 1: the paper leaves out the increment, or counts visits.
        assert cost["delays_worst"] == 2 * n + 1
        if cost["protocol"] == "ring":
            assert cost["paper_delays"] == 2 * n
            assert cost["idle_messages_per_delay"] == 1
        else:
            assert cost["paper_delays"] == cost["visits_worst"] == n
            assert cost["idle_messages_per_delay"] == 0


def test_medwraps_table_varies_sources_relations_and_conflicts(capsys: Capture) -> None:
    document = told("lab compare --only medwrap", capsys)["medwrap"]

    def column(part: str, approach: str, field: str) -> list[int]:
        return [cost[field] for cost in document[part] if cost["approach"] == approach]

    assert column("by_sources", "mre", "sources") == [2, 3, 4, 5]
    assert column("by_relations", "mre", "relations") == [3, 6, 9, 12]
    assert column("by_conflicts", "mre", "conflicts") == [0, 1, 2, 3]
    # N (1 + X) counted, N + 2X in the paper.
    assert column("by_conflicts", "medwrap", "source_reads") == [3, 6, 9, 12]
    assert column("by_conflicts", "medwrap", "paper_source_reads") == [3, 5, 7, 9]
    assert column("by_relations", "simplistic", "mediator_delays") == [5, 11, 17, 23]
    assert column("by_sources", "medwrap", "stored_rows") == [0, 0, 0, 0]
    assert column("by_sources", "mre", "stored_rows") == [20, 30, 40, 50]


def test_a_ring_that_is_not_silent_when_idle_makes_compare_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def noisy(sources: tuple[int, ...]) -> list[RingCost]:
        return [replace(cost, idle_messages_per_delay=1.0) for cost in ring_costs(sources)]

    monkeypatch.setattr(compare_rings, "ring_costs", noisy)
    assert execute(["lab", "compare", "--only", "rings"]) == 1
    assert "Rings" in capsys.readouterr().out


def test_a_level_that_was_missed_makes_compare_fail(
    two: Measured, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    missed: Callable[[], Measured] = lambda: replace(two, levels={"sweep": Level.STRONG})  # noqa: E731
    monkeypatch.setattr(compare_sweep, "compared", missed)
    assert execute(["lab", "compare", "--only", "sweep"]) == 1
    assert "strong" in capsys.readouterr().out


def test_a_medwrap_that_stores_something_makes_compare_fail() -> None:
    found = MedwrapSection.measured()
    assert found.is_good
    first = found.by_sources[0]
    storing = replace(first, counted=replace(first.counted, stored_rows=1))
    assert not replace(found, by_sources=(storing, *found.by_sources[1:])).is_good


@pytest.fixture(scope="module")
def merging() -> MergingSection:
    """Two numbers of views, two loads, one seed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compare_merging, "VIEWS", (1, 4))
        patched.setattr(compare_merging, "LOADS", (10, 50))
        patched.setattr(compare_merging, "HEAVY_LOADS", (50, 800))
        patched.setattr(compare_merging, "SEEDS", (1,))
        return MergingSection.measured()


def test_views_that_wait_for_each_other_are_less_fresh_and_one_alone_is_not(
    merging: MergingSection,
) -> None:
    assert merging.is_good
    found = merging.document()
    alone, merged = (found["delay_ms_by_views"][k] for k in ("each view alone", "merged"))
    assert alone["1"] == merged["1"]
    assert merged["4"] > 1.2 * alone["4"]


def test_the_merge_process_is_the_bottleneck_at_a_high_load_only(merging: MergingSection) -> None:
    assert set(merging.document()["bottleneck_from"].values()) == {800}


def test_a_study_shows_every_transaction_to_every_view_that_it_concerns() -> None:
    few = Study(3, 50, True, transactions=30)
    assert timed(few) == timed(few)
    # A merge process that takes longer for each message is busier, and everything is shown later.
    slow = replace(few, durations=Durations(message=5.0))
    assert timed(slow).delay_ms > timed(few).delay_ms
    assert timed(slow).merge_busy > timed(few).merge_busy
