"""Names and values as somebody would choose them who means harm: they are names and values, nothing else."""

from __future__ import annotations

import pytest

from live.sources.hostile_names import HOSTILE
from live.sources.probing import FeedLog, effect_of, read_all
from viewkeeper.sources.interface import KeyedRead


@pytest.fixture
def database(rig):
    with rig.database() as fresh:
        yield fresh


def text_in(kind: str, text: str) -> str:
    escaped = text.replace("'", "''")
    return "'" + (escaped.replace("\\", "\\\\") if kind == "mariadb" else escaped) + "'"


def test_hostile_names_and_values_are_names_and_values(rig, database):
    writer = database.writer()
    writer.run("CREATE TABLE canary (id bigint PRIMARY KEY)")
    writer.run("INSERT INTO canary VALUES (1)")
    tables = HOSTILE if rig.kind != "mariadb" else [n for n in HOSTILE if "\n" not in n]
    for name in tables:
        quoted = rig.quote(name)
        writer.run(f"CREATE TABLE {quoted} (id bigint PRIMARY KEY, {quoted} varchar(200))")
        writer.run(f"INSERT INTO {quoted} VALUES (1, {text_in(rig.kind, name)})")
    with database.open() as source:
        assert source.schemas().keys() >= {"canary", *tables}
        script = source.setup_sql(tables)
        assert "canary" in script or rig.kind == "mariadb"
        source.setup(tables)
        assert [f for f in source.preflight(tables) if f.severity == "refused"] == []
        start = source.start_position()
        with FeedLog(source, start, tables) as log:
            for name in tables:
                writer.run(f"UPDATE {rig.quote(name)} SET id = 2")
            log.catch_up()
            changed = effect_of(log.transactions)
        with source.cut(tables) as cut:
            found = read_all(cut, tables)
            for name in tables:
                answer = cut.read(KeyedRead(name, ("id", name)))
                assert [row[name] for batch in answer for row in batch.to_pylist()] == [name]
        source.teardown()
    for name in tables:
        assert changed[name, (1, name)] == -1
        assert changed[name, (2, name)] == found[name, (2, name)] == 1
    assert writer.fetch("SELECT id FROM canary") == [(1,)]
    writer.close()


def test_the_printed_script_with_hostile_names_does_what_it_says(rig, database):
    """It is run by whoever owns the server: a table's name must not become a statement of his."""
    if rig.kind != "postgres":
        pytest.skip("elsewhere the script of the test above is what setup runs")
    writer = database.writer()
    writer.run("CREATE TABLE canary (id bigint PRIMARY KEY)")
    for name in HOSTILE:
        writer.run(f"CREATE TABLE {rig.quote(name)} (id bigint PRIMARY KEY)")
    with database.open() as source:
        rig.server.run_script(source.setup_sql(HOSTILE), database.name)
        assert [f for f in source.preflight(HOSTILE) if f.severity == "refused"] == []
        source.teardown()
    assert writer.fetch("SELECT count(*) FROM canary") == [(0,)]
    writer.close()
