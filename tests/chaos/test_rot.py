"""A slice of the rot storm: some hundreds of bits, and some of everything else that a disk may do."""

from __future__ import annotations

import random

import pytest

from chaos.rot import ACTIONS, Report, storm

FLIPS, HARM = 150, 60


def judged(report: Report, turns: int) -> None:
    assert (report.silent, report.crashes) == ([], [])
    assert report.turns == turns
    # A storm that hurts nothing proves nothing.
    assert report.detected > turns // 10


@pytest.mark.timeout(1200)
def test_no_flipped_bit_is_ever_read_silently():
    judged(storm(random.randrange(2**32), iter(range(FLIPS)), ("flip",)), FLIPS)


@pytest.mark.timeout(1200)
def test_whatever_a_disk_does_reads_are_right_or_fail_by_name():
    others = tuple(name for name in ACTIONS if name != "flip")
    report = storm(random.randrange(2**32), iter(range(HARM)), others)
    judged(report, HARM)
    assert report.by_action["older-warehouse"]
