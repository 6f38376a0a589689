"""SQLite alone: a WAL starts over although cuts overlap all the time, and nothing is lost by it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from live.sources.probing import FeedLog
from live.sources.rig_sqlite import SQLiteDatabase
from live.sources.workload import RELATIONS, create_tables
from viewkeeper.sources.sqlite import wal_restart as relief
from viewkeeper.sources.sqlite.wal_restart import is_beyond

LIMIT = 400_000
# At least COMMITS, then until the log has started over.
COMMITS, COMMITS_MAX = 400, 50_000


@pytest.fixture
def database():
    with SQLiteDatabase() as database:
        yield database


@pytest.fixture
def source(database):
    writer = database.writer()
    create_tables(writer)
    writer.close()
    with database.open() as source:
        source.setup(RELATIONS)
        yield source


def salts(wal: Path) -> bytes:
    return wal.read_bytes()[:32][16:24]


def under_load(database, source) -> tuple[int, int]:
    """Write with one cut always open until the log has started over (a busy machine may need longer);
    how many commits there were, and how many times it started over."""
    wal = Path(f"{source.path}-wal")
    stop, done = threading.Event(), threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        writer = database.writer()
        writer.run("PRAGMA wal_autocheckpoint = 50")
        while written < COMMITS or (not stop.is_set() and written < COMMITS_MAX):
            writer.run("INSERT INTO marks VALUES (?, ?)", "x" * 2_000, written)
            written += 1
            time.sleep(0.002)
        writer.close()
        done.set()

    with ThreadPoolExecutor(2) as threads:
        cut = source.cut(RELATIONS)
        seen = {salts(wal)}
        writing = threads.submit(write)
        while not done.is_set():
            opening = threads.submit(source.cut, RELATIONS)
            # As a job does: its cut is closed some time after the next one wants to open.
            time.sleep(0.01)
            cut.close()
            cut = opening.result()
            seen.add(salts(wal))
            if len(seen) > 1:
                stop.set()
        cut.close()
        writing.result()
    return written, len(seen) - 1


def test_the_log_starts_over_although_a_cut_is_always_open(database, source, monkeypatch):
    monkeypatch.setattr(relief, "WAL_BYTES_MAX", LIMIT)
    monkeypatch.setattr(relief, "AGAIN_SECONDS", 0.05)
    start = source.start_position()
    with FeedLog(source, start) as log:
        written, restarts = under_load(database, source)
        assert restarts >= 1
        log.catch_up()
    rows = [row for t in log.transactions for change in t.changes for row in change.inserted]
    assert [row[1] for row in rows] == list(range(written))


def test_without_it_the_log_grows_as_long_as_cuts_overlap(database, source, monkeypatch):
    """Shows that the test above would notice.

    Step by step, in one thread: a cut that finds all of the log in the database already needs nothing of
    the log and does not keep it from starting over, so each cut opens over a row that is in the log alone.
    """
    monkeypatch.setattr(relief, "WAL_BYTES_MAX", 1 << 40)
    wal = Path(f"{source.path}-wal")
    writer = database.writer()
    writer.run("PRAGMA wal_autocheckpoint = 0")
    writer.run("INSERT INTO marks VALUES (?, ?)", "x" * 2_000, 0)
    cut = source.cut(RELATIONS)
    seen = {salts(wal)}
    for number in range(1, COMMITS):
        writer.run("INSERT INTO marks VALUES (?, ?)", "x" * 2_000, number)
        following = source.cut(RELATIONS)
        cut.close()
        cut = following
        # All that this cut needs not keep is moved; the next row would start the log over, if it could.
        writer.run("PRAGMA wal_checkpoint(PASSIVE)")
        seen.add(salts(wal))
    cut.close()
    writer.close()
    assert len(seen) == 1
    assert is_beyond(wal, LIMIT)


def test_a_log_that_started_over_in_a_large_file_is_not_large(tmp_path):
    wal = tmp_path / "file-wal"
    page = 512
    frame_bytes = 24 + page
    old, new = b"\1" * 8, b"\2" * 8

    def filled(salts_by_frame: list[bytes], current: bytes) -> None:
        header = bytes(8) + page.to_bytes(4, "big") + bytes(4) + current + bytes(8)
        frames = [bytes(8) + salts + bytes(8 + page) for salts in salts_by_frame]
        wal.write_bytes(header + b"".join(frames))

    assert not is_beyond(wal, 1)
    filled([old] * 20, old)
    assert is_beyond(wal, 10 * frame_bytes)
    assert not is_beyond(wal, 20 * frame_bytes)
    filled([new] * 5 + [old] * 15, new)
    assert not is_beyond(wal, 10 * frame_bytes)
    assert is_beyond(wal, 4 * frame_bytes)
