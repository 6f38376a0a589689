"""A slice of `make fuzz`: so many harmed messages for each decoder, and everything that was captured as it is."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzzing import binlog, corpus, pgoutput, second_binlog, wal
from fuzzing.mutations import KINDS, harmed
from slices import seeds
from viewkeeper.sources.mariadb.binlog import ROW_EVENTS
from viewkeeper.sources.postgres.pgoutput import DELETE, INSERT, UPDATE

harms = st.lists(
    st.tuples(st.integers(0, KINDS - 1), st.integers(0, 1 << 20), st.integers(0, 2**32 - 1)),
    min_size=1,
    max_size=6,
)
quietly = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(quietly, max_examples=seeds(600, least=60))
@given(st.sampled_from(pgoutput.seeds()), harms)
def test_a_harmed_message_of_postgres_is_refused_by_name_or_read_alike_by_all(seed, harm):
    pgoutput.attack(harmed(seed, harm))


@settings(quietly, max_examples=seeds(600, least=60))
@given(st.sampled_from(binlog.seeds()), harms)
def test_a_harmed_event_of_mariadb_is_refused_by_name_or_read_alike_by_both(seed, harm):
    binlog.attack(harmed(seed, harm))


@settings(quietly, max_examples=seeds(60, least=15))
@given(st.sampled_from(wal.seeds()), harms)
def test_of_a_harmed_wal_we_believe_what_sqlite_believes(seed, harm):
    wal.attack(harmed(seed, harm))


@pytest.mark.parametrize("target", [pgoutput, binlog, wal], ids=lambda module: module.__name__)
def test_what_was_captured_is_read_alike_by_all(target):
    for seed in target.seeds():
        target.attack(seed)


def test_all_captured_rows_of_postgres_are_read_in_both_ways():
    seen = set()
    by_oid = {relation.described.oid: relation for relation in pgoutput.relations()}
    for message in corpus.messages("postgres"):
        relation = by_oid.get(int.from_bytes(message[1:5], "big"))
        if message[0] not in (INSERT, UPDATE, DELETE) or relation is None:
            seen.add(message[:1])
            continue
        if int.from_bytes(message[6:8], "big") != len(relation.described.streamed):
            continue  # after ALTER TABLE
        assert pgoutput._read(relation.typed, message) is not None, message
        is_plain = pgoutput._as_columns(relation, message) is not None
        seen.add((message[:1], is_plain))
    # All kinds of messages; rows in both ways; and an update that left a value in TOAST.
    assert seen >= {b"B", b"C", b"R", b"T", b"M", b"O", b"Y"}
    assert seen >= {(b"I", True), (b"U", True), (b"D", True), (b"U", False)}
    assert not seen & {(b"I", False), (b"D", False)}


def test_all_captured_rows_of_mariadb_are_those_of_the_other_decoder():
    compared = 0
    for pair in binlog.pairs():
        layout, images = binlog.decoded(pair.table_map, pair.rows)
        assert images
        if pair.rows[4] in ROW_EVENTS:
            try:
                others = second_binlog.images(pair.table_map, pair.rows)
            except UnicodeDecodeError:
                continue  # bytes that its latin1 does not have
            assert len(others) == len(images)
            compared += len(images) * len(layout.kept)
    assert compared > 500
    kinds = {event[4] for event in corpus.events()}
    assert kinds >= {2, 15, 16, 19, 162, 165, 166, 167}  # with compressed statements and rows
