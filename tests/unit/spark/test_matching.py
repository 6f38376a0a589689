from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.spark.matching import (
    DENSE,
    _by_place,
    _by_search,
    _order,
    combined_numbers,
    matches,
    small_numbers,
)

FAR = 2**62


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(-FAR, FAR), st.none()), max_size=40))
def test_small_numbers_are_the_same_for_the_same_values(values: list[int | None]) -> None:
    numbers = small_numbers(pa.chunked_array([pa.array(values, pa.int64())]))
    assert len(numbers) == len(values)
    assert len(set(zip(values, numbers.tolist(), strict=True))) == len(set(values))
    assert len(set(numbers.tolist())) == len(set(values))


@pytest.mark.parametrize("first", [0, -5, FAR])
def test_keys_that_follow_each_other_are_such_numbers_already(first: int) -> None:
    values = [first + n for n in (3, 0, 3, 7)]
    assert small_numbers(pa.chunked_array([values], pa.int64())).tolist() == [3, 0, 3, 7]


@given(st.lists(st.integers(-FAR, FAR), min_size=1, max_size=40))
def test_they_stay_small_enough_for_an_array(values: list[int]) -> None:
    numbers = small_numbers(pa.chunked_array([values], pa.int64()))
    assert 0 <= int(np.max(numbers)) <= DENSE * len(values)


# Close together, far apart, and both at once.
keys = st.lists(
    st.one_of(
        st.integers(-5, 5), st.integers(70_000, 70_003), st.sampled_from([-(2**63), 2**63 - 1])
    ),
    max_size=12,
)


@given(keys, keys)
def test_all_lines_with_the_same_key_meet_and_no_others(left: list[int], right: list[int]) -> None:
    found = matches(*([pa.chunked_array([pa.array(side, pa.int64())])] for side in (left, right)))
    pairs = list(zip(*map(np.ndarray.tolist, found.lines()), strict=True))
    assert sorted(pairs) == [
        (m, n) for m, mine in enumerate(left) for n, theirs in enumerate(right) if mine == theirs
    ]
    assert found.pairs == len(pairs)


@given(st.lists(st.integers(-40, 40)), st.lists(st.integers(-50, 50), min_size=1))
def test_close_keys_meet_as_far_ones_do(left: list[int], right: list[int]) -> None:
    mine, theirs = np.array(left, np.int64), np.array(right, np.int64)
    by_place, by_search = _by_place(mine, theirs), _by_search(mine, theirs)
    found = [
        sorted(zip(*map(np.ndarray.tolist, m.lines()), strict=True)) for m in (by_place, by_search)
    ]
    assert found[0] == found[1]


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**17), st.integers(0, 2**62))))
def test_numbers_are_sorted_whatever_their_size(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    assert numbers[_order(numbers)].tolist() == sorted(values)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**20))))
def test_pairs_of_numbers_get_one_number_each(pairs: list[tuple[int, int]]) -> None:
    first, second = (np.array([pair[n] for pair in pairs], np.int64) for n in (0, 1))
    numbers = combined_numbers(first, second).tolist()
    assert len({*zip(pairs, numbers, strict=True)}) == len({*pairs}) == len({*numbers})
    assert all(0 <= number < len(pairs) for number in numbers)
