"""Texts that people and editors produce: long, deep, odd, broken. Nothing but UsageError comes out."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.sql.corpus import CORPUS, catalog
from viewkeeper.algebra.expressions import Column, Literal
from viewkeeper.algebra.types import INTEGER, STRING
from viewkeeper.errors import UsageError
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.definition import ViewDefinition

CATALOG = catalog()
TEXTS = [path.read_bytes().decode() for path in sorted(CORPUS.glob("*/*.sql"))]


def parse(text: str) -> ViewDefinition:
    return parse_view("v", text, CATALOG)


def outcome(text: str) -> str:
    """The message of the refusal, or that there was none."""
    try:
        parse(text)
    except UsageError as error:
        return error.message
    return "accepted"


def refusal(text: str) -> UsageError:
    with pytest.raises(UsageError) as error:
        parse(text)
    return error.value


def test_a_thousand_conditions_are_a_thousand_predicates() -> None:
    conditions = " AND ".join(f"qty <> {number}" for number in range(1000))
    (term,) = parse(f"SELECT o_id FROM shop.orders WHERE {conditions}").terms
    assert len(term.predicates) == 1000


def test_an_in_list_may_be_long() -> None:
    numbers = ", ".join(map(str, range(3000)))
    (term,) = parse(f"SELECT o_id FROM shop.orders WHERE qty IN ({numbers})").terms
    assert len(term.predicates) == 1


def test_parentheses_may_be_deep() -> None:
    (term,) = parse(f"SELECT {'(' * 20}o_id{')' * 20} AS x FROM shop.orders").terms
    assert term.outputs[0].expression == Column("orders.o_id")


def test_parentheses_too_deep_are_refused_and_not_crashed_on() -> None:
    assert refusal(f"SELECT {'(' * 3000}o_id{')' * 3000} AS x FROM shop.orders").code == "too-deep"


def test_a_sum_of_thousands_is_refused_and_not_crashed_on() -> None:
    assert refusal(f"SELECT {' + '.join(['qty'] * 5000)} AS x FROM shop.orders").code == "too-deep"


def test_bare_names_in_other_scripts_are_names() -> None:
    (term,) = parse("SELECT größe AS 漢字 FROM crm.`Odd Names` AS ñ").terms
    assert [o.name for o in term.outputs] == ["漢字"]
    assert term.occurrences[0].alias == "ñ"


def test_lines_and_columns_count_characters_after_a_byte_order_mark_and_windows_line_ends() -> None:
    error = refusal("\ufeffSELECT '漢字', o_id,\r\n  qyt\r\nFROM shop.orders")
    assert error.message.startswith("view v, line 2, column 3: there is no column qyt")


def test_errors_carry_no_escape_sequences_and_no_names_of_python() -> None:
    for text in (
        "SELECT o_id FROM shop.orders WHERE qty BETWEEN 1",
        "SELECT (a FROM t",
        "SELECT a b c",
    ):
        message = str(refusal(text))
        assert "\x1b" not in message
        assert "class" not in message


def test_strings_are_unescaped_as_spark_does() -> None:
    (term,) = parse(
        r"""SELECT 'a\tb' AS a, '\%' AS b, '\x' AS c, '\u00e9\101' AS d, "it's" AS e, 'q''q' AS f,
        R'\n' AS g, '\U0001F600' AS h, 'a\\' AS i FROM shop.orders"""
    ).terms
    found = [o.expression.value for o in term.outputs if isinstance(o.expression, Literal)]
    assert found == ["a\tb", "\\%", "x", "éA", "it's", "q'q", "\\n", "😀", "a\\"]


def test_the_sign_of_a_number_belongs_to_it() -> None:
    (term,) = parse("SELECT -9223372036854775808 AS x FROM shop.orders").terms
    assert term.outputs[0].expression == Literal(-(2**63), INTEGER)


def test_a_string_beside_a_string_column_stays_text() -> None:
    (term,) = parse("SELECT o_id, '2024-01-01' AS day FROM shop.orders").terms
    assert term.outputs[1].expression == Literal("2024-01-01", STRING)


def test_the_second_branch_of_a_union_need_not_name_its_outputs() -> None:
    definition = parse(
        "SELECT o_id AS x FROM shop.orders UNION ALL SELECT qty + 1 FROM shop.orders"
    )
    assert [term.schema.names for term in definition.terms] == [("x",), ("x",)]


def test_a_predicate_written_twice_is_kept_once() -> None:
    (term,) = parse("SELECT o_id FROM shop.orders WHERE qty > 1 AND qty > 1").terms
    assert len(term.predicates) == 1


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_a_damaged_text_is_read_or_refused_but_never_crashes(
    text: str, chance: random.Random
) -> None:
    words = text.split(" ")
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(words))
        match chance.randrange(4):
            case 0:
                del words[place : place + 1]
            case 1:
                words.insert(place, chance.choice(words or [""]))
            case 2:
                words[place : place + 1] = [words[place][: len(words[place]) // 2]]
            case _:
                words.insert(
                    place, chance.choice(["(", ")", "'", ",", "SELECT", "NOT", "*", "`", "."])
                )
        words = words or ["x"]
    assert outcome(" ".join(words)).startswith(("view v, line ", "accepted"))


@given(st.text(max_size=40))
def test_noise_is_refused(noise: str) -> None:
    assert refusal(noise).message.startswith("view v, line ")
