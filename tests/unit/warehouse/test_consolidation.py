from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.warehouse.entries_for_tests import log_file, state
from viewkeeper.errors import UsageError
from viewkeeper.warehouse.consolidation import (
    PATIENCE,
    Amortisation,
    Fold,
    Merge,
    may_be_due,
    work_for,
)
from viewkeeper.warehouse.ledger import MERGED_FILES, merged_tail

BASE = log_file("base", 10, 10, rows=1000)
RULE = Amortisation(fold_ratio=0.5, fold_rows_min=100, merge_files=4)


def test_nothing_is_due_for_a_short_log() -> None:
    files = [BASE, *(log_file(f"l{n}", 11 + n, 11 + n) for n in range(3))]
    assert work_for(state(1, 10), files, RULE) is None


def test_small_files_of_one_size_are_merged_and_larger_ones_left_alone() -> None:
    small = [log_file(f"l{n}", 20 + n, 20 + n) for n in range(4)]
    large = log_file("large", 11, 19, rows=300)
    assert work_for(state(1, 10), [BASE, large, *small], RULE) == Merge(tuple(small))


def test_the_log_is_folded_once_it_is_a_fraction_of_the_base() -> None:
    def with_log(rows: int) -> object:
        return work_for(state(1, 10), [BASE, log_file("l", 11, 19, rows)], RULE)

    assert with_log(499) is None
    assert with_log(500) == Fold((BASE, log_file("l", 11, 19, 500)))


def test_a_small_view_is_not_folded_for_every_change() -> None:
    tiny = log_file("base", 10, 10, rows=2)
    assert work_for(state(1, 10), [tiny, log_file("l", 11, 12, 99)], RULE) is None
    assert isinstance(work_for(state(1, 10), [tiny, log_file("l", 11, 12, 100)], RULE), Fold)


@given(base=st.integers(0, 300), log=st.lists(st.integers(1, 80), max_size=12))
def test_a_view_is_passed_over_only_when_nothing_is_due(base: int, log: list[int]) -> None:
    files = [log_file("b", 10, 10, base)] if base else []
    files += [log_file(f"l{n}", 11 + n, 11 + n, rows) for n, rows in enumerate(log)]
    known = replace(state(1, 10), base_rows=base, log_rows=sum(log), log_files=len(log))
    if work_for(known, files, RULE) is not None:
        assert may_be_due(known, RULE)


def test_while_a_run_is_behind_consolidating_waits_but_not_for_ever() -> None:
    def due(rows: int) -> object:
        return work_for(state(1, 10), [BASE, log_file("l", 11, 19, rows)], RULE.put_off())

    assert due(500 * PATIENCE - 1) is None
    assert isinstance(due(500 * PATIENCE), Fold)


def test_rules_that_would_never_rest_are_refused() -> None:
    with pytest.raises(UsageError, match="bad-consolidation"):
        Amortisation(merge_files=1)


@given(st.lists(st.integers(1, 60), max_size=300))
def test_each_row_is_rewritten_a_bounded_number_of_times(changes: list[int]) -> None:
    """Amortised: all rows written by consolidation are a small multiple of the rows committed."""
    files, base_txn, rewritten = [log_file("b", 0, 0, 50)], 0, 0
    for txn, rows in enumerate(changes, start=1):
        files.append(log_file(f"l{txn}", txn, txn, rows))
        while (work := work_for(state(1, base_txn), files, RULE)) is not None:
            total = sum(file.rows for file in work.files)
            rewritten += total
            rest = [file for file in files if file not in work.files]
            if isinstance(work, Fold):
                base_txn = txn
                files = [log_file(f"b{txn}", txn, txn, total)]
            else:
                first = min(file.min_txn for file in work.files)
                files = [*rest, log_file(f"m{txn}", first, txn, total)]
    # A fold rewrites at most (1 + 1/ratio) rows per row of log, a merge one per tier.
    assert rewritten <= 10 * (sum(changes) + 50)


@given(st.integers(0, 3000))
def test_the_ledger_has_few_files_however_long_it_grows(entries: int) -> None:
    rows: list[int] = []
    rewritten = 0
    for _ in range(entries):
        tail = merged_tail(rows)
        merged = rows[len(rows) - tail :]
        rows = [*rows[: len(rows) - tail], sum(merged) + 1]
        rewritten += sum(merged)
    assert sum(rows) == entries
    assert len(rows) <= 3 * MERGED_FILES
    assert rewritten <= 3 * entries
