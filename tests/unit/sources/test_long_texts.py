"""Texts that a source's users write are looked through with memory that does not grow with them."""

from __future__ import annotations

import tracemalloc

import pytest

from viewkeeper.sources.mariadb.columns import _LABEL
from viewkeeper.sources.mariadb.ddl import ChangesTables, judged
from viewkeeper.sources.mariadb.dialect import Dialect
from viewkeeper.sources.sqlite.catalog import _LOGGED_NAME

MIB = 1 << 20
DIALECTS = [Dialect(ansi, escapes) for ansi in (False, True) for escapes in (False, True)]


def peak(work) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("quote", ["'", '"', "`"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
@pytest.mark.parametrize("inside", ["x", "x{0}{0}", "{0}{0}"])
def test_a_statement_with_a_long_text_takes_little_more_than_its_length(quote, dialect, inside):
    long = inside.format(quote) * (MIB // len(inside.format(quote)))
    statement = f"ALTER TABLE t COMMENT {quote}{long}{quote}, ADD size INT"
    assert peak(lambda: judged(statement, "d", dialect)) < 8 * MIB
    assert peak(lambda: dialect.masked(statement)) < 8 * MIB
    verdict = judged(statement, "d", dialect)
    assert isinstance(verdict, ChangesTables)
    assert verdict.tables == (("d", "t"),)


@pytest.mark.parametrize("end", ['")', '"', ""])
@pytest.mark.parametrize("inside", ["x", 'x""', '""'])
def test_a_trigger_with_a_long_name_takes_little_more_than_its_length(inside, end):
    name = inside * (MIB // len(inside))
    sql = f'SELECT (SELECT NEW."a"), (SELECT NEW."{name}{end}'
    found: list[str] = []
    assert peak(lambda: found.extend(_LOGGED_NAME.findall(sql))) < 8 * MIB
    assert found == (['"a"', f'"{name}"'] if end == '")' else ['"a"'])


def test_a_label_of_an_enum_that_is_long_takes_little_more_than_its_length():
    declared = "enum('a','" + "''x" * (MIB // 3) + "')"
    assert peak(lambda: _LABEL.findall(declared)) < 8 * MIB
    assert _LABEL.findall(declared)[0] == "a"
