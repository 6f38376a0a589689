"""Rows in our own tables that our triggers did not write: the feed stops by name, and nothing is guessed."""

from __future__ import annotations

import pytest

from live.sources.probing import followed
from viewkeeper.errors import SourceError, ViewkeeperError

KIND = "sqlite"

DAMAGES = [
    *(
        f"UPDATE _viewkeeper_layouts SET description = {value}"
        for value in ("'[]'", "'x'", "NULL", "x'ff00'", "'{}'", "json_set(description, '$.columns', 7)")
    ),
    "UPDATE _viewkeeper_layouts SET description = json_set(description, '$.keys', json('[1]'))",
    "DELETE FROM _viewkeeper_clock",
    *(f"UPDATE _viewkeeper_clock SET seq = {value}" for value in ("'x'", "NULL", "-1", "1.5")),
    *(f"UPDATE _viewkeeper_clock SET history = {value}" for value in ("'x'", "NULL")),
    *(f"UPDATE _viewkeeper_log_1 SET at = {value}" for value in ("'x'", "NULL", "1e300", "-1e300", "7")),
    *(f"UPDATE _viewkeeper_log_1 SET sign = {value}" for value in ("'x'", "NULL", "0", "1.5", "2")),
    *(f"UPDATE _viewkeeper_log_1 SET vanished = {value}" for value in ("'x'", "NULL", "0.5")),
    "UPDATE _viewkeeper_log_1 SET v1 = x'ff'",
    "DELETE FROM _viewkeeper_log_1",
    "DROP TABLE _viewkeeper_log_1",
    "ALTER TABLE _viewkeeper_log_1 DROP COLUMN v1",
    "ALTER TABLE _viewkeeper_clock DROP COLUMN history",
    "ALTER TABLE _viewkeeper_layouts DROP COLUMN since",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_log_that_others_have_written_stops_the_feed_by_name(database, damage):
    writer = database.writer()
    writer.run("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
    with database.open() as source:
        source.setup(["things"])
        start = source.start_position()
    writer.run("INSERT INTO things VALUES (1, 'a')")
    writer.run(damage)
    # As another process finds it: a run that knew the tables before would go on with what it knows.
    with database.open() as source, pytest.raises(SourceError) as caught:
        followed(source, start)
    assert isinstance(caught.value, ViewkeeperError)
    assert caught.value.hint
    writer.close()
