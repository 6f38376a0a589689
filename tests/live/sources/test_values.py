"""A value from the feed and the same value from a query are equal, for every accepted type."""

import pyarrow as pa
import pytest

from live.sources.probing import FeedLog, read_all
from viewkeeper.algebra.types import Schema, canonical_row
from viewkeeper.arrow import batch_of, rows_of
from viewkeeper.sources.interface import KeyedRead


def changes_of(log, relation):
    return [c for t in log.transactions for c in t.changes if c.relation == relation]


def test_every_accepted_type_is_alike_on_both_paths(rig, database, subtests):
    writer = database.writer()
    for number, case in enumerate(rig.values):
        writer.run(f"CREATE TABLE v{number} (id BIGINT PRIMARY KEY, v {case.declared})")
    tables = [f"v{number}" for number in range(len(rig.values))]
    with database.open() as source:
        source.setup(tables)
        start = source.start_position()
        for number, case in enumerate(rig.values):
            for index, literal in enumerate((*case.literals, "NULL")):
                writer.run(f"INSERT INTO v{number} VALUES ({index}, {literal})")
            writer.run(f"UPDATE v{number} SET id = id + 100")
        with FeedLog(source, start, tables) as log:
            log.catch_up()
        with source.cut(tables) as cut:
            for number, case in enumerate(rig.values):
                with subtests.test(case.declared):
                    check_case(case, f"v{number}", cut, log)
                    check_keys(f"v{number}", cut)
        source.teardown()
    writer.close()


def check_case(case, table, cut, log):
    relation = cut.schemas[table]
    assert dict(relation.refused) == {}
    queried = sorted((row for _, row in read_all(cut, [table])), key=lambda row: row[0])
    changes = changes_of(log, table)
    inserted = [row for c in changes for row in c.inserted if row[0] < 100]
    deleted = [row for c in changes for row in c.deleted]
    updated = [row for c in changes for row in c.inserted if row[0] >= 100]
    values = [row[1] for row in queried]
    assert len(values) == len(case.literals) + 1
    for path in (inserted, deleted, updated):
        # By representation too: 1 == 1.0 == True must not pass for parity.
        assert [repr(row[1]) for row in path] == [repr(value) for value in values]
    assert [canonical_row(row, relation.schema) for row in queried] == queried
    assert values[-1] is None
    if case.expected is not None:
        assert [repr(value) for value in values[:-1]] == [repr(e) for e in case.expected]


def check_keys(table, cut):
    """Every value that was read finds its own row again when it is given as a key."""
    schema = cut.schemas[table].schema
    rows = sorted((row for _, row in read_all(cut, [table])), key=lambda row: row[0])
    for row in rows:
        keys = pa.Table.from_batches([batch_of([row[1:]], Schema(schema.fields[1:]))])
        question = KeyedRead(table, schema.names, ("v",), keys)
        found = [r for batch in cut.read(question) for r in rows_of(batch, schema)]
        assert (row in found) == (row[1] is not None)
        assert all(each[1] == row[1] or each[1] is row[1] for each in found)


def test_every_other_type_is_refused_with_its_column_named(rig, database, subtests):
    writer = database.writer()
    with database.open() as source:
        for number, declared in enumerate(rig.refused_types):
            with subtests.test(declared):
                writer.run(f"CREATE TABLE r{number} (id BIGINT PRIMARY KEY, bad {declared})")
                relation = source.schemas([f"r{number}"])[f"r{number}"]
                assert relation.schema.names == ("id",)
                assert set(relation.refused) == {"bad"}
                assert len(relation.refused["bad"]) > 10
    writer.close()


@pytest.mark.parametrize("name", ["or'der", 'quo"ted', "sp ace", "Großbuchstabe", "semi;colon"])
def test_awkward_identifiers_work_everywhere(rig, database, name):
    quoted = rig.quote(name)
    writer = database.writer()
    writer.run(f"CREATE TABLE {quoted} (id BIGINT PRIMARY KEY, {quoted} VARCHAR(20))")
    with database.open() as source:
        source.setup([name])
        start = source.start_position()
        writer.run(f"INSERT INTO {quoted} VALUES (1, 'x')")
        writer.run(f"UPDATE {quoted} SET {quoted} = 'y'")
        with FeedLog(source, start, [name]) as log:
            log.catch_up()
        with source.cut([name]) as cut:
            assert read_all(cut, [name]) == {(name, (1, "y")): 1}
        assert [c.inserted for c in changes_of(log, name)] == [[(1, "x")], [(1, "y")]]
        source.teardown()
    writer.close()
