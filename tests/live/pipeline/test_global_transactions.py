"""Transactions over several databases: all parts show in one state, or none does."""

from __future__ import annotations

import json

import pytest

from live.pipeline.recording import view_states
from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

BALANCES = """
SELECT 'shop' AS bank, id, balance FROM shop.accounts
UNION ALL SELECT 'crm', id, balance FROM crm.accounts
"""


@pytest.fixture
def banks(shop):
    """Two banks; what moves between them is tied by a message here and by an outbox there."""
    for bank in ("shop", "crm"):
        shop.run(bank, "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)")
        shop.run(bank, "INSERT INTO accounts VALUES (0, 500), (1, 500)")
    shop.run("crm", "CREATE TABLE outbox (id VARCHAR(40) PRIMARY KEY, parts BIGINT)")
    shop.write_view("balances", BALANCES)
    file = shop.folder / "viewkeeper.toml"
    text = file.read_text().replace("[sources.crm]\n", '[sources.crm]\noutbox = "outbox"\n')
    # However slow the machine: what is whole is never given up.
    file.write_text(text + "\n[transactions]\ntimeout_seconds = 3600\n")
    writers = {bank: shop.databases[bank].writer() for bank in ("shop", "crm")}
    yield writers
    for writer in writers.values():
        writer.close()


def send(writer, tie: str, amount: int, table: str = "accounts") -> None:
    """The sending bank's part: PostgreSQL, with a message."""
    writer.begin()
    writer.run(f"UPDATE {table} SET balance = balance - ? WHERE id = 0", amount)
    message = json.dumps({"id": tie, "parts": 2})
    writer.run("SELECT pg_logical_emit_message(true, 'viewkeeper.transaction', ?::text)", message)
    writer.commit()


def receive(writer, tie: str, amount: int) -> None:
    writer.begin()
    writer.run("UPDATE accounts SET balance = balance + ? WHERE id = 1", amount)
    writer.run("INSERT INTO outbox VALUES (?, ?)", tie, 2)
    writer.commit()


def inside(writer, turn: int, table: str = "accounts") -> None:
    writer.begin()
    for account, amount in ((0, -turn), (1, turn)):
        writer.run(f"UPDATE {table} SET balance = balance + ? WHERE id = ?", amount, account)
    writer.commit()


def totals(keeper, pipeline) -> list[int]:
    states = view_states(keeper.warehouse(), pipeline.views["balances"].definition)
    return [sum(balance * count for (_, _, balance), count in state) for state in states]


def go_on(pipeline) -> None:
    targets = pipeline.committed_now()
    while not pipeline.has_applied(targets):
        pipeline.cycle(0.1)


def test_money_between_two_banks_is_never_on_its_way(shop, banks, running_spark):
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            pipeline.load()
            for turn in range(12):
                # Now one part is first, now the other; and life goes on in between.
                first, second = (send, receive) if turn % 2 else (receive, send)
                banks_of = {send: banks["shop"], receive: banks["crm"]}
                first(banks_of[first], f"t{turn}", 10 + turn)
                inside(banks["shop"], turn)
                if turn == 5:
                    pipeline.cycle(0.5)
                inside(banks["crm"], turn)
                second(banks_of[second], f"t{turn}", 10 + turn)
            go_on(pipeline)
            found = totals(keeper, pipeline)
            assert set(found) == {2000}
            # Each pair is one state; what happened in between is one of its own, or came with it.
            assert 12 < len(found) <= 12 + 24 + 1
        assert all(audit.is_equal for audit in keeper.audit())


def test_a_part_that_never_comes_is_named_and_the_others_shown(shop, banks, running_spark):
    file = shop.folder / "viewkeeper.toml"
    file.write_text(file.read_text().replace("= 3600", "= 1.5"))
    events = []
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline(lambda event: events.append(event.as_dict())) as pipeline,
    ):
        pipeline.load()
        send(banks["shop"], "lost", 50)
        inside(banks["shop"], 3)
        go_on(pipeline)
        assert [event["code"] for event in events] == ["global-transaction-incomplete"]
        assert "1 of 2 parts of lost" in events[0]["message"]
        assert totals(keeper, pipeline) == [2000, 1950, 1950]
        receive(banks["crm"], "lost", 50)
        go_on(pipeline)
        assert [event["code"] for event in events][1:] == ["global-transaction-late-part"]
        assert totals(keeper, pipeline) == [2000, 1950, 1950, 2000]


def test_a_part_behind_a_held_one_is_not_lost_after_a_rename(shop, banks, running_spark):
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            pipeline.load()
            shop.run("shop", "ALTER TABLE accounts RENAME TO books")
            inside(banks["shop"], 1, "books")
            go_on(pipeline)
            # Its feed was opened again for the new name; now parts wait for the other bank's.
            send(banks["shop"], "t", 50, "books")
            inside(banks["shop"], 2, "books")
            receive(banks["crm"], "t", 50)
            inside(banks["shop"], 3, "books")
            go_on(pipeline)
            found = totals(keeper, pipeline)
            assert set(found) == {2000}
        assert all(audit.is_equal for audit in keeper.audit())


def test_a_rename_among_parts_that_wait_loses_none_of_them(shop, banks, running_spark):
    """One part is before the rename, one behind it, and both wait for the other bank; while the views
    take the rename, what they were given of the second comes again, with its other part."""
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            pipeline.load()
            send(banks["shop"], "t1", 50)
            shop.run("shop", "ALTER TABLE accounts RENAME TO books")
            inside(banks["shop"], 2, "books")
            send(banks["shop"], "t2", 30, "books")
            inside(banks["shop"], 3, "books")
            for tie, amount in (("t1", 50), ("t2", 30)):
                receive(banks["crm"], tie, amount)
            inside(banks["crm"], 4)
            go_on(pipeline)
            assert set(totals(keeper, pipeline)) == {2000}
        assert all(audit.is_equal for audit in keeper.audit())
