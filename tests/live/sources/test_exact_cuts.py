"""The sentence everything rests on: we know exactly which transactions an answer reflects."""

from collections import Counter

import pyarrow as pa
import pytest

from live.sources.probing import FeedLog, effect_of, probe_cuts, read_all, without_zeros
from live.sources.workload import RELATIONS, Workload, create_tables, seed
from viewkeeper.arrow import arrow_schema, rows_of
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import KeyedRead

# A wrong variant is wrong with some probability per cut; it must be caught within so many.
CUTS_TO_CATCH_MAX = 3_000


@pytest.fixture
def ready(database):
    """A seeded database whose source is set up; the source and the state before any writer."""
    writer = database.writer()
    create_tables(writer)
    seed(writer)
    writer.close()
    with database.open() as source:
        source.setup(RELATIONS)
        yield source
        source.teardown()


def state_now(source):
    with source.cut(RELATIONS) as cut:
        return read_all(cut)


def test_every_answer_under_concurrent_writers_equals_the_reference(database, ready, cuts_wanted):
    start, initial = ready.start_position(), state_now(ready)
    workload = Workload(database)
    with FeedLog(ready, start) as log:
        with workload:
            # As many as that, and until the writers have had their turns beside them.
            verdict = probe_cuts(
                ready,
                log,
                initial,
                cuts=cuts_wanted,
                more=lambda: workload.count <= cuts_wanted / 4,
            )
        assert verdict.wrong == []
        assert verdict.probes >= cuts_wanted
        log.catch_up()
        final = Counter(initial)
        final.update(effect_of(log.transactions))
    assert workload.errors == []
    assert len(workload.committed) > cuts_wanted / 4
    assert without_zeros(final) == state_now(ready)


def test_a_wrong_variant_is_caught(rig, wrong_variant, database, ready):
    with rig.open_wrong(wrong_variant, database) as wrong:
        start, initial = wrong.start_position(), state_now(wrong)
        with FeedLog(wrong, start) as log, Workload(database, writers=6):
            verdict = probe_cuts(
                wrong, log, initial, cuts=CUTS_TO_CATCH_MAX, enough=lambda v: bool(v.wrong)
            )
    assert verdict.wrong, (
        f"{wrong_variant} was right {verdict.probes} times out of {verdict.probes}"
    )


def test_a_cut_stays_where_it_is_while_writers_go_on(database, ready):
    with ready.cut(RELATIONS) as cut:
        before = read_all(cut)
        writer = database.writer()
        writer.begin()
        writer.run("DELETE FROM accounts WHERE id < 0")
        writer.commit()
        writer.close()
        assert read_all(cut) == before
    assert state_now(ready) != before


@pytest.mark.parametrize("key_count", [0, 1, 7, 3000])
def test_a_keyed_read_gives_exactly_the_rows_of_its_keys(database, ready, key_count):
    with ready.cut(RELATIONS) as cut:
        schema = cut.schemas["accounts"].schema
        everything = [row for (name, row) in read_all(cut, ["accounts"]).elements()]
        keys = pa.table({"id": pa.array([-n for n in range(1, key_count + 1)], pa.int64())})
        question = KeyedRead("accounts", schema.names, ("id",), keys)
        found = [row for batch in cut.read(question) for row in rows_of(batch, schema)]
    assert sorted(found) == sorted(row for row in everything if -key_count <= row[0] < 0)


def test_a_keyed_read_keeps_duplicates_and_takes_keys_of_several_columns(database, ready):
    keys = pa.table({"label": ["seed", "seed", None], "weight": pa.array([0, 0, 1], pa.int64())})
    with ready.cut(["marks"]) as cut:
        schema = cut.schemas["marks"].schema
        question = KeyedRead("marks", schema.names, ("label", "weight"), keys)
        found = [row for batch in cut.read(question) for row in rows_of(batch, schema)]
    # 20 seeded marks with weights 0, 1, 2 in turn; a key given twice does not double its rows.
    assert found == [("seed", 0)] * 7


def test_a_read_gives_the_columns_it_was_asked_for_in_that_order(ready):
    with ready.cut(["accounts"]) as cut:
        (*batches,) = cut.read(KeyedRead("accounts", ("balance", "id")))
        assert [batch.schema.names for batch in batches] == [["balance", "id"]] * len(batches)
        assert batches, "there are rows"


def test_an_empty_relation_has_its_types_all_the_same(database, ready):
    with ready.cut(["entries"]) as cut:
        schema = cut.schemas["entries"].schema
        for batch in cut.read(KeyedRead("entries", schema.names)):
            assert batch.schema == arrow_schema(schema)
            assert batch.num_rows == 0


@pytest.mark.parametrize("parts", [1, 3, 8])
def test_the_parts_of_a_relation_make_the_whole(ready, parts):
    with ready.cut(["accounts", "marks"]) as cut:
        for relation in ("accounts", "marks"):
            schema = cut.schemas[relation].schema
            rows = [
                row
                for part in range(parts)
                for batch in cut.read(KeyedRead(relation, schema.names, part=part, parts=parts))
                for row in rows_of(batch, schema)
            ]
            assert Counter((relation, row) for row in rows) == read_all(cut, [relation])


def test_a_shared_cut_reads_the_same_from_elsewhere(rig, needs, database, ready):
    needs("share")
    with Workload(database, writers=2), ready.cut(RELATIONS) as cut:
        shared = cut.share()
        here = read_all(cut)
        for _ in range(3):
            with (
                database.open(allow_setup=False) as elsewhere,
                elsewhere.cut(RELATIONS, shared) as joined,
            ):
                assert read_all(joined) == here
                assert joined.bound == cut.bound


def test_an_unknown_column_or_relation_is_a_named_error(ready):
    with pytest.raises(SourceError) as caught:
        ready.cut(["nowhere"])
    assert caught.value.code == "unknown-relation"
    with ready.cut(["accounts"]) as cut, pytest.raises(SourceError) as caught:
        list(cut.read(KeyedRead("accounts", ('id"; DROP TABLE accounts; --',))))
    assert caught.value.code == "broken-query"
    assert not caught.value.retryable
