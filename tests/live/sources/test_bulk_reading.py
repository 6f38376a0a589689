"""Whole relations at one cut, in parts: the same rows however many connections read them."""

from collections import Counter

import pytest

from live.sources.probing import read_all
from live.sources.workload import RELATIONS, Workload, create_tables, seed
from viewkeeper.arrow import rows_of
from viewkeeper.errors import SourceError
from viewkeeper.live.reading import bulk_reading
from viewkeeper.live.reading.bulk_reading import BulkReading
from viewkeeper.views.definition import RelationName

ROWS = 3_000


@pytest.fixture
def ready(database):
    writer = database.writer()
    create_tables(writer)
    seed(writer)
    writer.begin()
    for number in range(ROWS):
        writer.run("INSERT INTO marks (label, weight) VALUES (?, ?)", f"bulk{number}", number)
    writer.commit()
    writer.close()
    with database.open() as source:
        source.setup(RELATIONS)
        yield source
        source.teardown()


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(bulk_reading, "READERS_MAX", 4)
    monkeypatch.setattr(bulk_reading, "PART_ROWS_MIN", 500)
    monkeypatch.setattr(bulk_reading, "ROWS_BETWEEN_REPORTS", 100)


def whole(cut):
    return {RelationName("src", name): cut.schemas[name].schema for name in RELATIONS}


def rows_in(batches, needed):
    return Counter(
        (name.relation, row)
        for name, found in batches.items()
        for batch in found
        for row in rows_of(batch, needed[name])
    )


def test_all_readers_together_read_the_relations_at_the_cut(rig, database, ready, monkeypatch):
    reports, twins = [], []
    with Workload(database, writers=2), ready.cut(RELATIONS) as cut:
        made = cut.twin
        monkeypatch.setattr(cut, "twin", lambda: twins.append(made()) or twins[-1])
        needed = whole(cut)
        read = BulkReading(cut, needed, lambda name, seen: reports.append((name, seen))).batches()
        assert rows_in(read, needed) == read_all(cut)
    assert len([t for t in twins if t is not None]) == (3 if "share" in rig.features else 0)
    for name, batches in read.items():
        seen = [s for n, s in reports if n == name]
        assert [s.rows for s in seen] == sorted(s.rows for s in seen)
        assert [s.is_whole for s in seen] == [False] * (len(seen) - 1) + [True]
        assert seen[-1].rows == sum(batch.num_rows for batch in batches)
        assert seen[-1].percent == 100
        assert all(s.percent is None or s.percent < 100 for s in seen[:-1])


def test_the_estimate_is_of_the_right_size(ready):
    with ready.cut(RELATIONS) as cut:
        actual = Counter(relation for relation, _ in read_all(cut).elements())
        estimate = cut.row_estimate("marks")
    assert actual["marks"] / 4 <= estimate <= actual["marks"] * 4


def test_a_reader_that_fails_ends_the_reading_and_is_told(rig, ready, monkeypatch):
    with ready.cut(RELATIONS) as cut:
        needed = whole(cut)

        def lost(question):
            raise SourceError("cut-lost", "gone", source="src", retryable=True)

        monkeypatch.setattr(cut, "read", lost)
        with pytest.raises(SourceError) as caught:
            BulkReading(cut, needed, lambda name, seen: None).batches()
    assert caught.value.code == "cut-lost"


def test_a_source_without_connections_to_spare_is_read_by_the_one_there_is(ready, monkeypatch):
    with ready.cut(RELATIONS) as cut:
        needed = whole(cut)

        def full():
            raise SourceError("source-full", "too many connections", source="src", retryable=True)

        monkeypatch.setattr(cut, "twin", full)
        read = BulkReading(cut, needed, lambda name, seen: None).batches()
        assert rows_in(read, needed) == read_all(cut)
