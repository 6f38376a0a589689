"""A limit on our statements is the server's: a slow one ends with an error that passes."""

from __future__ import annotations

import pytest

from live.sources.conftest import rig_class
from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import SourceError
from viewkeeper.sources.opening import open_source

SLOW = {"postgres": "SELECT 1 FROM pg_sleep(600)", "mariadb": "SELECT SLEEP(600)"}
# All other statements must be done in this time on a machine that is busy with other tests.
LIMIT_SECONDS = 5


@pytest.mark.parametrize("kind", sorted(SLOW))
def test_a_slow_statement_is_given_up(kind):
    cls = rig_class(kind)
    reason = cls.unavailable()
    if reason is not None:
        pytest.skip(f"{kind}: {reason}")
    with cls() as server, server.database() as database:
        writer = database.writer()
        writer.run("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        writer.close()
        with open_source("s", database.url, allow_setup=True) as source:
            source.setup(["t"])
        with (
            open_source("s", database.url, statement_seconds=LIMIT_SECONDS) as source,
            source.cut(["t"]) as cut,
            pytest.raises(SourceError) as caught,
        ):
            list(cut.query(SLOW[kind], Schema.of(n=INTEGER)))
        assert caught.value.retryable, caught.value
