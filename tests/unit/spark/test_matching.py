from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.spark.matching import DENSE, small_numbers

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
