"""Which comment lines are headers, and which are prose."""

from __future__ import annotations

import pytest

from viewkeeper.errors import UsageError
from viewkeeper.views.headers import PROTOCOLS, Headers, read_headers
from viewkeeper.views.level import Level
from viewkeeper.views.sqltext import SqlText


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
    text = "-- keep: 7 Days\n-- refresh: 5s\nSELECT 1"
    assert headers(text).settings == (("keep", "7 Days"), ("refresh", "5s"))


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
        ("-- protcol: eca", "unknown-header", "did you mean protocol?"),
    ],
)
def test_slips_name_what_was_meant(line: str, code: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        headers(f"{line}\nSELECT 1")
    assert error.value.code == code
    assert error.value.hint.startswith(hint)
