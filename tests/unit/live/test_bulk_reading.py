from __future__ import annotations

import pytest

from viewkeeper.live.reading.bulk_reading import RowsRead


@pytest.mark.parametrize(
    ("rows", "expected", "is_whole", "percent"),
    [
        (0, 200, False, 0),
        (50, 200, False, 25),
        (300, 200, False, 99),
        (50, None, False, None),
        (50, 0, False, None),
        (50, 200, True, 100),
        (0, None, True, 100),
    ],
)
def test_a_relation_is_read_to_a_hundred_percent_at_its_end_and_not_before(
    rows: int, expected: int | None, is_whole: bool, percent: int | None
) -> None:
    assert RowsRead(rows, expected, 1.0, is_whole).percent == percent


def test_rows_per_second_are_those_of_the_time_it_took() -> None:
    assert RowsRead(1_000, None, 0.5, is_whole=True).rows_per_second == 2_000
    assert RowsRead(0, None, 0.0, is_whole=True).rows_per_second == 0
