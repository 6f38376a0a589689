"""Where transactions end, found in the WAL file itself."""

import sqlite3

import pytest

from viewkeeper.sources.sqlite.commits import CommitWatch
from viewkeeper.sources.sqlite.setup import install

CLOCK_PAGE = "SELECT rootpage FROM sqlite_schema WHERE name = '_viewkeeper_clock'"


class Watched:
    def __init__(self, folder):
        self.path = folder / "w.db"
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("CREATE TABLE t (a TEXT)")
        self.db.execute("CREATE TABLE other (a TEXT)")
        install(self.db, ["t"])
        (history,) = self.db.execute("SELECT history FROM _viewkeeper_clock").fetchone()
        self.watch = CommitWatch(self.path, history)
        self.ends()

    def write(self, rows, *, table="t", end="COMMIT"):
        self.db.execute("BEGIN")
        for _ in range(rows):
            self.db.execute(f"INSERT INTO {table} VALUES (hex(zeroblob(300)))")
        self.db.execute(end)

    def ends(self):
        (page,) = self.db.execute(CLOCK_PAGE).fetchone()
        (now,) = self.db.execute("SELECT seq FROM _viewkeeper_clock").fetchone()
        return self.watch.ends(page, now)


@pytest.fixture
def watched(tmp_path):
    watched = Watched(tmp_path)
    yield watched
    watched.db.close()


def test_every_commit_is_found_once_and_no_abort(watched):
    watched.write(2)
    watched.write(5)
    watched.write(4, end="ROLLBACK")
    watched.write(9, table="other")
    watched.write(1)
    assert watched.ends() == [2, 7, 8]
    assert watched.ends() == []
    watched.write(300)
    assert watched.ends() == [308]


def test_a_transaction_larger_than_the_cache_that_spilled_into_the_wal_has_one_end(watched):
    watched.db.execute("PRAGMA cache_size = 5")
    watched.write(2_000)
    watched.write(2_000, end="ROLLBACK")
    watched.write(1)
    assert watched.ends() == [2_000, 2_001]


def test_ends_before_the_wal_started_over_are_found_behind_the_new_ones(watched):
    for _ in range(6):
        watched.write(1)
    assert watched.ends() == [1, 2, 3, 4, 5, 6]
    watched.write(3)
    watched.write(2)
    watched.db.execute("PRAGMA wal_checkpoint(RESTART)")
    watched.write(1)
    assert watched.ends() == [9, 11, 12]


def test_what_the_new_wal_has_overwritten_is_lost_and_nothing_is_made_up(watched):
    watched.write(1)
    watched.db.execute("PRAGMA wal_checkpoint(RESTART)")
    for _ in range(40):
        watched.write(1)
    found = watched.ends()
    assert set(found) <= set(range(1, 42))
    assert found[-1] == 41
    assert found == sorted(found)


def test_a_commit_of_which_the_page_was_never_written_does_not_count(watched):
    """A writer that was killed between two writes, and a WAL that started over after it."""
    for _ in range(6):
        watched.write(1)
    watched.ends()
    watched.write(2)
    watched.write(1)
    (page_size,) = watched.db.execute("PRAGMA page_size").fetchone()
    watched.db.execute("PRAGMA wal_checkpoint(RESTART)")
    with open(f"{watched.path}-wal", "r+b") as wal:
        # Damage the clock's page as the last commit left it; the file keeps its headers.
        content = wal.read()
        last = content.rindex(watched.watch._history)
        wal.seek(last)
        wal.write(b"\0" * 16)
    assert page_size > 16
    watched.write(1)
    assert watched.ends() == [8, 10]


def test_numbers_of_every_size_are_read(watched):
    for number in (0, 1, 127, 128, 40_000, 2**23, 2**31, 2**40, 2**60):
        watched.db.execute("UPDATE _viewkeeper_clock SET seq = ?", (number - 1,))
        watched.ends()
        watched.write(1)
        assert watched.ends() == [number]


def test_a_vacuum_moves_the_clock_and_is_survived(watched):
    watched.write(1)
    watched.db.execute("DROP TABLE other")
    watched.db.execute("VACUUM")
    watched.write(1)
    assert watched.ends()[-1] == 2


def test_without_a_wal_file_nothing_is_known(watched, tmp_path):
    assert CommitWatch(tmp_path / "nowhere.db", b"x" * 16).ends(1, 100) == []
