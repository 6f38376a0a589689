"""A slice of the rot storm: some hundreds of bits, some of all else that a disk may do, and users who mean harm."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from chaos.rot import ACTIONS, ATTACKS, Report, storm
from viewkeeper.testing.mariadb import mariadbd_missing
from viewkeeper.warehouse import checksums
from viewkeeper.warehouse.storage import Storage

FLIPS, HARM, ATTACKED = 150, 60, 25


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


def until_found(report: Report, most: int) -> Iterator[int]:
    """Turns until something is found."""
    for turn in range(most):
        if report.silent or report.crashes:
            return
        yield turn


@pytest.mark.timeout(1200)
def test_a_warehouse_that_does_not_verify_its_checksums_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unverified(storage: Storage, path: str, size: int, whose: str) -> pa.Buffer:
        with storage.filesystem.open_input_file(path) as source:
            return source.read_buffer(size)

    monkeypatch.setattr(checksums, "_content", unverified)
    report = Report()
    storm(random.randrange(2**32), until_found(report, 2_000), ("flip",), report)
    assert report.silent or report.crashes


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_no_user_of_a_source_makes_a_view_wrong_or_stops_it() -> None:
    if os.environ.get("CI") != "true" and mariadbd_missing():
        pytest.skip(mariadbd_missing())
    seed = random.randrange(2**32)
    sys.stderr.write(f"\nthe storm's seed: {seed}\n")
    report = storm(seed, iter(range(ATTACKED)), tuple(ATTACKS))
    assert (report.silent, report.crashes) == ([], []), f"seed {seed}"
    assert report.harmless == report.turns == ATTACKED


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_run_that_believes_messages_is_found_out() -> None:
    if os.environ.get("CI") != "true" and mariadbd_missing():
        pytest.skip(mariadbd_missing())
    report = Report()
    turns = until_found(report, 500)
    storm(random.randrange(2**32), turns, ("forged-message",), report, "chaos.hostile_run")
    assert report.silent or report.crashes
    sys.stderr.write(f"\nfound out: {report.silent or report.crashes}\n")
