"""Charts say what happened, where, and in which order."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import pytest

from viewkeeper.simulator.charts import chart_lines, lanes_of, svg_chart, wrapped
from viewkeeper.simulator.kernel.journal import Entry
from viewkeeper.simulator.plots import Panel, linear_ticks, log_ticks, merged, small_multiples
from viewkeeper.simulator.scenario_file import load_scenario, played, shipped_names

SVG = "{http://www.w3.org/2000/svg}"


def entries_of(name: str) -> list[Entry]:
    return played(load_scenario(name)).journal.entries


@pytest.mark.parametrize("name", shipped_names())
def test_a_chart_fits_into_a_hundred_columns(name: str) -> None:
    lines = chart_lines(entries_of(name), 100)
    assert max(len(line.lanes + line.text) for line in lines) <= 100


@pytest.mark.parametrize("name", shipped_names())
def test_every_entry_has_its_place_in_the_chart(name: str) -> None:
    entries = entries_of(name)
    kinds = [line.kind for line in chart_lines(entries)]
    assert kinds[0] == "head"
    for entry in entries:
        assert entry.kind in kinds
    # An entry may take several lines; they stay together and in order.
    collapsed = [kind for i, kind in enumerate(kinds[1:]) if i == 0 or kinds[i] != kind]
    happened = [e.kind for i, e in enumerate(entries) if i == 0 or entries[i - 1].kind != e.kind]
    assert collapsed == happened


def test_arrows_point_from_sender_to_receiver() -> None:
    entries = [
        Entry("commit", "a", "#1 R {(1)}", sends="#1"),
        Entry("deliver", "warehouse", "#1 arrives", "a", receives="#1"),
        Entry("ask", "warehouse", "?1 {(1)} ⊗ S", "b", sends="?1"),
        Entry("answer", "b", "!1 ⊥", "warehouse", sends="!1", receives="?1"),
    ]
    head, commit, deliver, ask, answer = (line.lanes for line in chart_lines(entries))
    assert head.split() == ["a", "b", "warehouse"]
    assert commit.split() == ["●", "│", "│"]
    assert deliver.strip().startswith("├─#1─")
    assert "┼" in deliver
    assert deliver.strip().endswith("▶")
    assert ask.split() == ["│", "│", "□"]
    assert answer.split()[0] == "│"
    assert answer.split()[1].startswith("◀─?1─")
    assert answer.strip().endswith("┤")


def test_rows_are_not_taken_apart_when_lines_are_broken() -> None:
    rows = ", ".join(f"({i}, {i + 1}, {i + 2})" for i in range(30))
    lines = wrapped(Entry("note", "warehouse", rows), 40)
    assert len(lines) > 5
    assert all(line.count("(") == line.count(")") for line in lines)


def test_the_warehouse_is_the_last_lane() -> None:
    assert lanes_of(entries_of("sweep-figure-5")) == ("s1", "s2", "s3", "warehouse")


@pytest.mark.parametrize("name", shipped_names())
def test_the_svg_has_one_arrow_for_each_message_that_arrived(name: str) -> None:
    entries = entries_of(name)
    root = xml.fromstring(svg_chart(entries, f"<{name}>", "the end", is_good=True))
    arrows = [line for line in root.iter(f"{SVG}line") if "marker-end" in line.attrib]
    assert len(arrows) == sum(1 for entry in entries if entry.receives)
    # Time runs downwards: nothing arrives before it left.
    assert all(float(a.attrib["y2"]) > float(a.attrib["y1"]) for a in arrows)
    assert root.findtext(f"{SVG}title") == f"<{name}>"
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")


def test_lines_that_coincide_become_one_with_both_names() -> None:
    one, two = ((1, 2.0), (2, 3.0)), ((1, 5.0), (2, 5.0))
    assert merged({"a": one, "b": two, "c": one}) == {"a, c": one, "b": two}


def test_small_multiples_draw_every_line_of_every_panel() -> None:
    lines = {"a, c": ((1, 1.0), (2, 40.0)), "b": ((1, 2.0), (2, 2.0))}
    panels = [Panel("p", "x", "y", lines), Panel("q", "x", "y", lines, logarithmic=True)]
    root = xml.fromstring(small_multiples("t", "s", panels))
    curves = list(root.iter(f"{SVG}polyline"))
    assert len(curves) == 4
    assert len({curve.attrib["class"] for curve in curves}) == 2


@pytest.mark.parametrize("highest", [0.3, 1, 5, 6.4, 12.8, 19, 54.2, 325, 1000])
def test_linear_ticks_are_even_few_and_reach_the_highest_value(highest: float) -> None:
    ticks = linear_ticks(highest)
    assert ticks[0] == 0
    assert ticks[-2] < highest <= ticks[-1] + 1e-9
    assert 2 <= len(ticks) <= 10


@pytest.mark.parametrize(("lowest", "highest"), [(0.5, 54.2), (1, 1), (0.07, 900), (2, 5)])
def test_logarithmic_ticks_enclose_all_values(lowest: float, highest: float) -> None:
    ticks = log_ticks(lowest, highest)
    assert ticks[0] <= lowest
    assert ticks[-1] >= highest
