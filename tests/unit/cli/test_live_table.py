"""What ``viewkeeper run`` shows while it loads and keeps views."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from viewkeeper.cli import live
from viewkeeper.cli.live import LiveTable
from viewkeeper.run_events import RelationRead, RunEvent, ViewsLoaded, ViewsStopped

HALF = RelationRead("shop.orders", 500_000, 10**6, 50, 250_000)
UNKNOWN = RelationRead("shop.orders", 7, None, None, 70)


def test_a_terminal_shows_a_bar_with_percent_and_speed_until_all_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(live, "console", lambda: terminal)
    with LiveTable({"sales": None}) as table:
        table.on_event(HALF)
        assert isinstance(terminal.file, io.StringIO)
        drawn = terminal.file.getvalue()
        assert "50 %" in drawn
        assert "500,000 rows" in drawn
        assert "250,000/s" in drawn
        terminal.file.truncate(0)
        table.on_event(ViewsLoaded(("sales",), 1, 2.0))
        assert "50 %" not in terminal.file.getvalue()


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (HALF, "Read 500,000 rows of shop.orders (50 %), 250,000 rows/s"),
        (UNKNOWN, "Read 7 rows of shop.orders, 70 rows/s"),
        # A view may stop by its own text, which is no source's.
        (
            ViewsStopped(("sales",), {"message": "m", "hint": ""}),
            "Stopped sales: m; viewkeeper check says more",
        ),
    ],
)
def test_elsewhere_it_is_a_line(
    event: RunEvent, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with LiveTable({"sales": None}) as table:
        table.on_event(event)
    assert capsys.readouterr().out.strip() == line
