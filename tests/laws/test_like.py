"""LIKE: the matcher against a slow plain one and against Spark, and its steps counted on hostile patterns."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.casts import cast_value
from viewkeeper.algebra.evaluation import compiled
from viewkeeper.algebra.expressions import Column, Like
from viewkeeper.algebra.like import LikePattern, Piece
from viewkeeper.algebra.types import DATE, INTEGER, STRING, decimal_type
from viewkeeper.errors import UsageError

LETTERS = ["a", "b", "%", "_", "\\", "\n", ".", "*", "é", "🙂", "\x00", "\r", "$", "^", "["]
PATTERNS = st.lists(
    st.sampled_from(["a", "b", "%", "_", "\\%", "\\_", "\\\\", "\n", ".", "é", "🙂", "%%", "["])
).map("".join)
TEXTS = st.lists(st.sampled_from(LETTERS)).map("".join)


def plain_like(pattern: str, text: str) -> bool:
    """What LIKE means, letter by letter; exponential, so for short ones alone."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(plain_like(pattern[1:], text[n:]) for n in range(len(text) + 1))
    if pattern[0] == "\\":
        return text[:1] == pattern[1] and plain_like(pattern[2:], text[1:])
    return text != "" and pattern[0] in ("_", text[0]) and plain_like(pattern[1:], text[1:])


@given(PATTERNS.filter(lambda p: len(p) <= 12), TEXTS.filter(lambda t: len(t) <= 12))
@example("%a%", "a")
@example("a%a", "a")
@example("_%_", "x")
@example("%_a_%a", "baba")
def test_it_means_what_like_means(pattern: str, text: str) -> None:
    assert LikePattern.of(pattern).matches(text) is plain_like(pattern, text)


def cases() -> tuple[list[str], list[str]]:
    draw = random.Random(10)
    parts = ["a", "b", "%", "_", "\\%", "\\_", "\\\\", "\n", "[", "$", "é", "🙂", "%a", "b%"]
    patterns = ["".join(draw.choices(parts, k=draw.randrange(8))) for _ in range(120)]
    patterns += [
        "%a%b%",
        "a%b%a",
        "%a_%_b%",
        "a%",
        "%a",
        "%a%",
        "a%b",
        "%\n%b%",
        "%🙂%é%",
        "a%%b%%a",
    ]
    texts = ["".join(draw.choices(LETTERS, k=draw.randrange(9))) for _ in range(200)]
    return list(dict.fromkeys(patterns)), list(dict.fromkeys(texts))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_matches_as_bags_do(spark) -> None:
    from viewkeeper.spark.expressions import value_sql
    from viewkeeper.spark.relation import SparkRelation

    patterns, texts = cases()
    schema = Schema.of(n=INTEGER, v=STRING)
    data = Bag.of(schema, enumerate(texts))
    asked = [Like(Column("v"), pattern) for pattern in patterns]
    written = [value_sql(like, schema) for like in asked]
    assert any("rlike" in text for text in written)
    assert any(" LIKE " in text for text in written)
    frame = SparkRelation.from_bag(spark, data).frame
    found = {row[0]: row[1:] for row in frame.selectExpr("n", *written).collect()}
    evaluators = [compiled(like, schema) for like in asked]
    wrong = [
        (patterns[p], text)
        for (n, text), p in itertools.product(enumerate(texts), range(len(patterns)))
        if evaluators[p]((n, text)) is not found[n][p]
    ]
    assert wrong == []
    assert sum(itertools.chain.from_iterable(found.values())) > 200


# -- steps ----------------------------------------------------------------------------------------


def steps_of(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many characters a match may compare: for each piece, its length at each place it looks at."""
    steps = 0
    search = Piece.first_place

    def counted(piece: Piece, text: str, start: int, end: int) -> int | None:
        nonlocal steps
        found = search(piece, text, start, end)
        looked = (end if found is None else found + 1) - start
        steps += max(looked, 0) * max(len(piece), 1)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Piece, "first_place", counted)
        LikePattern.of(pattern).matches(text)
    return steps


@pytest.mark.parametrize(
    "pattern",
    ["%a" * 30 + "%b", "%a_" * 20 + "b%", "a%" * 25 + "c", "%aaaab%aaaab%", "%_%_%_%_%b%"],
)
def test_steps_grow_with_the_text_and_no_faster(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = max(len(piece) for piece in LikePattern.of(pattern).pieces)
    for size in (1_000, 10_000, 100_000):
        text = "a" * size
        assert steps_of(pattern, text, monkeypatch) <= (size + len(pattern)) * (longest + 1)


def test_no_piece_can_go_back() -> None:
    """A piece is matched by a regular expression without quantifiers: it has one length."""
    pieces = LikePattern.of("a%_b+*?{2}|(x)[y]%\\%\\_\\\\%").pieces
    assert [len(piece) for piece in pieces] == [1, 15, 3, 0]
    for piece in pieces:
        unescaped = re.sub(r"\\.", "", piece.regex.pattern, flags=re.DOTALL)
        assert not set(unescaped) & set("*+?{|(")


def test_the_row_that_took_minutes() -> None:
    evaluate = compiled(Like(Column("v"), "%a" * 12 + "%b"), Schema.of(v=STRING))
    assert evaluate(("a" * 100_000,)) is False


# -- other texts of sources -----------------------------------------------------------------------


@pytest.mark.parametrize("target", [INTEGER, decimal_type(38, 0), DATE])
@pytest.mark.parametrize(
    "text",
    [
        "1" * 200_000 + "x",
        "1" * 200_000,
        "-" + "9" * 5_000,
        "1e" + "9" * 5_000,
        " " * 200_000 + "x",
    ],
    ids=["digits and a letter", "digits", "negative", "exponent", "blanks"],
)
def test_a_cast_of_a_long_text_is_refused_by_name(text: str, target) -> None:
    with pytest.raises(UsageError, match=r"bad-cast|overflow"):
        cast_value(text, STRING, target)


def test_digits_that_mean_little_are_read() -> None:
    assert cast_value("0" * 10_000 + "7", STRING, INTEGER) == 7
    assert cast_value("1e" + "0" * 5_000 + "2", STRING, decimal_type(38, 0)) == 100
