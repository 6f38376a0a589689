"""When the guard against getting slower speaks up."""

from __future__ import annotations

import check
import pytest

BASELINE = {"updates": 300.0, "load": 9.0}


@pytest.mark.parametrize("updates", [300.0, 210.0, 900.0])
def test_up_to_a_third_less_is_noise_and_more_is_fine(updates):
    assert check.fallen({"updates": updates, "load": 9.0}, BASELINE) == []


def test_more_than_a_third_less_is_told_by_name():
    assert check.fallen({"updates": 190.0, "load": 9.0}, BASELINE) == ["updates"]


def test_a_figure_that_is_gone_is_not_passed_over():
    assert check.fallen({"updates": 300.0}, BASELINE) == ["load"]
