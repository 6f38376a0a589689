"""How far views are behind a SQLite file, as any process can tell."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from viewkeeper.sources.opening import open_source


def test_the_lag_is_the_age_of_the_oldest_row_that_the_views_lack(tmp_path):
    path = tmp_path / "shop.db"

    def write(*statements: str) -> None:
        with closing(sqlite3.connect(path)) as link, link:
            for statement in statements:
                link.execute(statement)

    write("CREATE TABLE orders (id INTEGER PRIMARY KEY)", "CREATE TABLE others (id INTEGER)")
    url = f"sqlite:///{path}"
    with open_source("shop", url, allow_setup=True) as source:
        source.setup(["orders", "others"])
        before = source.start_position()
        assert source.health(before).lag_seconds == 0
        write("INSERT INTO orders VALUES (1)")
        write("INSERT INTO others VALUES (1)")
    # As if the first had been written ten minutes ago, and the second now.
    write("UPDATE _viewkeeper_log_1 SET at = at - 600 / 86400.0")
    with open_source("shop", url) as another:
        assert another.health().lag_seconds is None  # it does not know where the views are
        found = another.health(before)
        assert found.state == "ok"
        assert found.lag_seconds is not None
        assert found.lag_seconds >= 600
        assert another.health(another.start_position()).lag_seconds == 0
        elsewhere = dict(before) | {"history": "another file"}
        assert another.health(elsewhere).lag_seconds is None
