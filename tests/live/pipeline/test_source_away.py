"""A source that is stopped in order while it is being kept: it can stop, and is waited for."""

from __future__ import annotations

import threading

import psycopg
import pytest

from viewkeeper.errors import SourceError
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.project.keeper import Keeper
from viewkeeper.testing.postgres import EmbeddedPostgres

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_postgres_can_be_shut_down_in_order_under_a_run(tmp_path, running_spark, monkeypatch):
    with EmbeddedPostgres() as server:
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("CREATE TABLE orders (id bigint PRIMARY KEY, qty bigint)")
        (tmp_path / "views").mkdir()
        (tmp_path / "views" / "big.sql").write_text("SELECT id, qty FROM shop.orders WHERE qty > 3")
        (tmp_path / "viewkeeper.toml").write_text(f'[sources.shop]\nurl = "{server.url()}"\n')

        def never() -> None:
            raise AssertionError("the server could not stop in order")

        with (
            Keeper.open(tmp_path, allow_setup=True) as keeper,
            keeper.pipeline() as pipeline,
        ):
            pipeline.load()
            with psycopg.connect(server.url(), autocommit=True) as db:
                db.execute("INSERT INTO orders SELECT n, n % 9 FROM generate_series(1, 500) n")
            with monkeypatch.context() as patch:
                patch.setattr(server, "kill", never)
                server.shut_down()
            server.start()
            with psycopg.connect(server.url(), autocommit=True) as db:
                db.execute("INSERT INTO orders SELECT n, 7 FROM generate_series(501, 510) n")
            targets = None
            while targets is None or not pipeline.has_applied(targets):
                try:
                    pipeline.cycle(0.1)
                    targets = targets or pipeline.committed_now()
                except SourceError as error:
                    if not error.retryable:
                        raise
            assert audit_view(pipeline, keeper.warehouse(), "big").is_equal


def test_a_run_that_is_started_while_its_source_is_away_waits_and_says_so(tmp_path, running_spark):
    with EmbeddedPostgres() as server:
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("CREATE TABLE orders AS SELECT n AS id FROM generate_series(1, 5) n")
        (tmp_path / "views").mkdir()
        (tmp_path / "views" / "all.sql").write_text("SELECT id FROM shop.orders")
        file = tmp_path / "viewkeeper.toml"
        file.write_text(f'[sources.shop]\nurl = "{server.url()}"\n')
        server.shut_down()
        stop, told = threading.Event(), []

        def on_event(event) -> None:
            told.append(event.name)
            if told == ["source_waiting"]:
                server.start()
            if event.name == "loaded":
                stop.set()

        with Keeper.open(tmp_path, allow_setup=True) as keeper:
            with pytest.raises(SourceError):
                keeper.run_until_caught_up()  # whoever wants it now is told at once
            keeper.run(on_event=on_event, stop=stop)
            assert keeper.warehouse().read_arrow("all").num_rows == 5
        assert {"source_waiting", "loaded"} <= set(told)
        # What no waiting mends is said at once.
        file.write_text(f'[sources.shop]\nurl = "{server.url("nowhere")}"\n')
        with Keeper.open(tmp_path) as keeper, pytest.raises(SourceError) as caught:
            keeper.run(stop=threading.Event())
        assert caught.value.code == "access-denied"
