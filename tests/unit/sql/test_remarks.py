"""What is read over is said."""

from __future__ import annotations

from viewkeeper.sql.remarks import remarks


def test_an_order_is_read_over_and_that_is_said() -> None:
    text = "SELECT k FROM (SELECT k FROM a.r\nORDER BY x) z\nORDER BY k"
    assert sorted(remark.split(": ")[0] for remark in remarks("v", text)) == [
        "line 2, column 1",
        "line 3, column 1",
    ]


def test_nothing_is_said_of_a_view_that_does_all_it_says() -> None:
    assert remarks("v", "SELECT k FROM a.r WHERE x > 1") == ()
