from __future__ import annotations

import errno

import pytest

from viewkeeper.failpoints import VARIABLE, failpoint
from viewkeeper.warehouse.recovery import decision


@pytest.mark.parametrize(
    ("named", "latest", "same", "expected"),
    [
        (5, 5, True, "keep"),
        (5, 6, False, "restore"),
        (5, 7, True, "keep"),  # restored before, by a writer that died before it committed
        (5, 4, False, "damaged"),
    ],
)
def test_a_table_is_made_what_the_ledger_says(
    named: int, latest: int, same: bool, expected: str
) -> None:
    assert decision(named, latest, same_files=same) == expected


def test_a_failpoint_acts_where_and_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    failpoint("here")
    monkeypatch.setenv(VARIABLE, "here:2=full")
    failpoint("elsewhere")
    failpoint("here")
    with pytest.raises(OSError, match="No space left") as full:
        failpoint("here")
    assert full.value.errno == errno.ENOSPC
    failpoint("here")
