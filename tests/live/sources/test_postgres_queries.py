"""Fragments in PostgreSQL's own SQL at a cut: types as promised, parameters bound, errors named."""

from decimal import Decimal

import pyarrow as pa
import pytest

from viewkeeper.algebra.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    Field,
    Schema,
    decimal_type,
)
from viewkeeper.arrow import rows_of
from viewkeeper.errors import SourceError
from viewkeeper.sources.interface import KeyedRead
from viewkeeper.sources.postgres import reading

KIND = "postgres"


@pytest.fixture
def cut(database):
    writer = database.writer()
    writer.run("CREATE TYPE colour AS ENUM ('red', 'green')")
    writer.run(
        "CREATE TABLE goods (id INTEGER PRIMARY KEY, price NUMERIC(10, 2), code CHAR(5), "
        "host INET, shade colour, ratio REAL)"
    )
    writer.run("CREATE TABLE sales (goods INTEGER, qty SMALLINT)")
    writer.run("INSERT INTO goods VALUES (1, 9.5, 'ab', '10.0.0.1', 'red', 0.1)")
    writer.run("INSERT INTO sales VALUES (1, 3), (1, 3), (1, 4)")
    with database.open() as source:
        source.setup(["goods", "sales"])
        with source.cut(["goods", "sales"]) as cut:
            yield cut
        source.teardown()
    writer.close()


def answer(cut, sql, schema, parameters=()):
    return [row for batch in cut.query(sql, schema, parameters) for row in rows_of(batch, schema)]


def columns(*types):
    return Schema(tuple(Field(f"out {n}", type) for n, type in enumerate(types)))


def test_a_join_keeps_duplicates_and_gives_the_promised_types(cut):
    sql = (
        "SELECT g.id, s.qty, g.price, s.qty > 3 FROM public.goods g "
        "JOIN public.sales s ON s.goods = g.id ORDER BY s.qty"
    )
    schema = columns(INTEGER, INTEGER, decimal_type(10, 2), BOOLEAN)
    expected = [(1, 3, Decimal("9.50"), False)] * 2 + [(1, 4, Decimal("9.50"), True)]
    assert answer(cut, sql, schema) == expected


def test_values_of_a_fragment_are_what_the_feed_would_give(cut):
    schema = columns(STRING, STRING, STRING, DOUBLE)
    rows = answer(cut, "SELECT code, host, shade, ratio FROM public.goods", schema)
    assert rows == [("ab", "10.0.0.1", "red", 0.10000000149011612)]


def test_a_computed_decimal_gets_the_scale_that_was_asked_for(cut):
    sql = "SELECT sum(s.qty * g.price) FROM public.goods g, public.sales s"
    assert answer(cut, sql, columns(decimal_type(38, 2))) == [(Decimal("95.00"),)]


def test_parameters_are_bound_and_never_become_text(cut):
    hostile = "ab'; DROP TABLE public.goods; --"
    sql = "SELECT id FROM public.goods WHERE code = $1::text AND id < $2::int8"
    assert answer(cut, sql, columns(INTEGER), ["ab", 5]) == [(1,)]
    assert answer(cut, sql, columns(INTEGER), [hostile, 5]) == []


def test_an_empty_answer_is_an_answer(cut):
    assert answer(cut, "SELECT id FROM public.goods WHERE id < 0", columns(INTEGER)) == []


@pytest.mark.parametrize(
    "sql", ["SELECT nothing FROM public.goods", "SELECT id FROM public.gone", "SELECT id, id FROM public.goods"]
)  # fmt: skip
def test_a_fragment_that_does_not_fit_is_a_broken_query(cut, sql):
    with pytest.raises(SourceError) as caught:
        answer(cut, sql, columns(INTEGER))
    assert caught.value.code == "broken-query"


def test_a_fragment_can_not_write(cut):
    with pytest.raises(SourceError):
        answer(
            cut,
            "WITH d AS (DELETE FROM public.goods RETURNING id) SELECT id FROM d",
            columns(INTEGER),
        )


MOST = 2**63 - 1


@pytest.mark.parametrize("names", [("goods",), ("qty",), ("goods", "qty")])
def test_whole_numbers_that_are_spelled_out_find_what_bound_ones_find(cut, monkeypatch, names):
    goods, qty = [1, -MOST - 1, None, 1, MOST, 0], [3, 4, 3, 3, -1, None]
    every = {"goods": pa.array(goods, pa.int64()), "qty": pa.array(qty, pa.int64())}
    schema = cut.schemas["sales"].schema
    question = KeyedRead(
        "sales", schema.names, names, pa.table({name: every[name] for name in names})
    )
    found = []
    for least in (1, 1_000_000):
        monkeypatch.setattr(reading, "SPELLED_KEYS_MIN", least)
        found.append(sorted(row for batch in cut.read(question) for row in rows_of(batch, schema)))
    assert found[0] == found[1]
    assert len(found[0]) == (2 if len(names) == 2 else 3)
