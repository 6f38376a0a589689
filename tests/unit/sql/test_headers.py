"""Which comment lines are headers, and which are prose."""

from __future__ import annotations

import pytest

from unit.sql import rich
from viewkeeper.errors import UsageError
from viewkeeper.sql.headers import (
    PROTOCOLS,
    REFRESH,
    Headers,
    read_headers,
)
from viewkeeper.sql.parser import parse_view
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.views.keeping import kept_relations
from viewkeeper.views.level import Level


def headers(text: str) -> Headers:
    return read_headers(SqlText("v", text))


def test_a_view_without_headers_is_complete() -> None:
    assert headers("SELECT 1") == Headers(Level.COMPLETE, None, ())


def test_headers_may_have_remarks_blanks_and_any_case() -> None:
    text = "\n--Consistency:STRONG (not more)\n  --   PROTOCOL : Nested_Sweep\n\nSELECT 1"
    assert headers(text) == Headers(Level.STRONG, "nested-sweep")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_can_be_named(protocol: str) -> None:
    assert headers(f"-- protocol: {protocol}\n").protocol == protocol


def test_settings_keep_their_order_and_their_text() -> None:
    text = "-- freshness: 7 Seconds\n-- refresh: FULL (at night)\nSELECT 1"
    assert headers(text).settings == (("freshness", "7 Seconds"), ("refresh", "full"))


@pytest.mark.parametrize("policy", REFRESH)
def test_every_policy_of_refreshing_can_be_named(policy: str) -> None:
    assert headers(f"-- refresh: {policy}\n").settings == (("refresh", policy),)


def test_relations_to_keep_are_those_that_the_view_reads() -> None:
    text = "-- keep: C.W , a.r\nSELECT r.k FROM a.r JOIN c.w ON r.x = w.x WHERE r.k IN (SELECT k FROM b.t)"
    kept = kept_relations(parse_view("v", text, rich.CATALOG))
    assert [str(name) for name in kept] == ["c.w", "a.r"]
    assert kept_relations(parse_view("v", text.replace("keep", "note"), rich.CATALOG)) == ()


def test_a_relation_that_is_not_read_can_not_be_kept() -> None:
    text = "-- consistency: strong\n-- keep: a.r, b.tt\nSELECT r.k FROM a.r, b.t"
    with pytest.raises(UsageError) as error:
        parse_view("v", text, rich.CATALOG)
    assert error.value.message.startswith("view v, line 2, column 4: b.tt can't be kept")
    assert error.value.hint == "did you mean b.t?"


@pytest.mark.parametrize(
    "line",
    [
        "-- note: this is prose",
        "-- See also: the other view",
        "-- consistency is what we want: complete",
        "-- http://example.org: a link",
        "-- 1: one",
        "--",
        "-- sources: shop, crm",
    ],
)
def test_prose_is_no_header(line: str) -> None:
    assert headers(f"{line}\nSELECT 1") == Headers()


def test_headers_end_where_the_query_begins() -> None:
    assert headers("SELECT 1\n-- protocol: eca\n") == Headers()
    assert headers("/* x */\n-- protocol: eca\nSELECT 1") == Headers()


@pytest.mark.parametrize(
    ("line", "code", "hint"),
    [
        ("-- consistency: weak", "bad-header", "write -- consistency: convergent"),
        ("-- consistency: stronk", "bad-header", "did you mean strong?"),
        ("-- protocol: cstrobe", "bad-header", "did you mean c-strobe?"),
        ("-- refresh: incremental-strikt", "bad-header", "did you mean incremental-strict?"),
        ("-- refresh: 5s", "bad-header", "write -- refresh: auto"),
        ("-- protcol: eca", "unknown-header", "did you mean protocol?"),
    ],
)
def test_slips_name_what_was_meant(line: str, code: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        headers(f"{line}\nSELECT 1")
    assert error.value.code == code
    assert error.value.hint.startswith(hint)


def test_a_block_is_a_number_of_transactions() -> None:
    assert headers("-- block: 05 (five)\nSELECT k FROM a.r").settings == (("block", "5"),)


@pytest.mark.parametrize(
    "lines",
    ["-- block: 0", "-- block: many", "-- block: 2.5", "-- consistency: strong\n-- block: 2"],
)
def test_a_block_of_nothing_or_of_a_view_that_is_not_complete_is_refused(lines: str) -> None:
    with pytest.raises(UsageError) as refused:
        headers(f"{lines}\nSELECT k FROM a.r")
    assert refused.value.code == "bad-header"
