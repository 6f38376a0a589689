"""Every law on every body: on bags case by case, on Spark a hundred cases per job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter

import pytest
from hypothesis import given, settings

from laws.laws import (
    CASE,
    LAWS,
    SETTINGS,
    Contents,
    LawBroken,
    Setting,
    World,
    batched,
    cases,
    contents_for,
)
from laws.values import INTEGER, STRING, drawn
from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import TRUE, Column, Literal, Output

CASES_PER_JOB = 100

# The laws whose two sides are empty; any other that had nothing to compare would prove nothing.
ABOUT_NOTHING = {
    "every relation has an inverse",
    "join with nothing is nothing, right",
    "join with nothing is nothing, left",
}


def check_on_bags(setting: Setting, contents: Contents, laws: Iterable[str] = LAWS) -> None:
    world = World(setting, contents, Bag)
    for law in laws:
        left, right = LAWS[law](world)
        if left != right:
            raise LawBroken(law, left, right)


def check_all(known_cases, laws) -> None:
    for setting, contents in known_cases:
        check_on_bags(setting, contents, laws)


@given(cases())
@settings(max_examples=200)
def test_all_laws_hold_on_bags(case):
    check_on_bags(*case)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("number", [0, 1])  # together they have every type
@pytest.mark.parametrize("body", ["spark", "staged", "staged, in Arrow", "staged, small"])
def test_all_laws_hold_on_spark_and_both_sides_are_what_bags_give(spark, tmp_path, body, number):
    from viewkeeper.spark.arrow import table_of
    from viewkeeper.spark.relation import SparkRelation
    from viewkeeper.spark.staged import Staging

    def load(schema, lines):
        table = table_of(schema, lines)
        if body == "spark":
            return SparkRelation.from_arrow(spark, table, schema)
        # Small ones never reach Spark; as "staged" everything that Spark can do is left to it.
        rows_max = 10**9 if body == "staged, small" else 0
        in_arrow_max = 10**9 if body == "staged, in Arrow" else 0
        return Staging(spark, tmp_path, rows_max, in_arrow_max).relation(table, schema)

    setting = SETTINGS[number]
    apart, together = batched(setting, drawn(contents_for(setting), CASES_PER_JOB))
    on_spark, on_bags = World(apart, together, load), World(apart, together, Bag)

    found = in_few_jobs({law: sides(on_spark) for law, sides in LAWS.items()})
    for law, sides in LAWS.items():
        for side, expected in enumerate(sides(on_bags)):
            assert expected.is_empty() == (law in ABOUT_NOTHING), f"{law}: nothing to compare"
            compare_case_by_case(law, found[law, side], expected)


def in_few_jobs(sides_by_law):
    """The bags behind all sides of all laws, fetched with one job per distinct schema."""
    names = list(sides_by_law)
    pots = defaultdict(list)
    for number, law in enumerate(names):
        for side, relation in enumerate(sides_by_law[law]):
            tags = (Output("law", Literal(number, INTEGER)), Output("side", Literal(side, INTEGER)))
            columns = tuple(Output(name, Column(name)) for name in relation.schema.names)
            pots[relation.schema].append(relation.select(tags + columns))
    bags = {(law, side): Bag(sides_by_law[law][side].schema) for law in names for side in (0, 1)}
    for schema, relations in pots.items():
        total = sum(relations[1:], relations[0]).to_bag()
        rows = defaultdict(list)
        for (number, side, *row), count in total:
            rows[names[number], side].append((tuple(row), count))
        bags |= {key: Bag(schema, lines) for key, lines in rows.items()}
    return bags


def compare_case_by_case(law: str, found: Bag, expected: Bag) -> None:
    assert found.schema == expected.schema, law
    if found == expected:
        return
    of_case = itemgetter(found.schema.position(CASE))
    wrong = min(of_case(row) for row, _ in found - expected)
    mine, theirs = (
        Bag(bag.schema, [(row, n) for row, n in bag if of_case(row) == wrong])
        for bag in (found, expected)
    )
    raise LawBroken(law, mine, theirs, where=f", case {wrong}: Spark (left), bags (right)")


# -- the laws can fail -----------------------------------------------------------------------------

_join = Bag.join


def without_signs(self, other, on=(), where=TRUE):
    right = _join(self, other, on, where)
    return Bag(right.schema, ((row, abs(count)) for row, count in right))


def without_duplicates(self, other, on=(), where=TRUE):
    right = _join(self, other, on, where)
    return Bag(right.schema, ((row, 1 if count > 0 else -1) for row, count in right))


def null_meets_null(self, other, on=(), where=TRUE):
    right = _join(self, other, on, where)
    return right + Bag(right.schema, _null_pairs(self, other, on, only_mixed_signs=False))


def null_meets_null_of_the_other_sign(self, other, on=(), where=TRUE):
    right = _join(self, other, on, where)
    return right + Bag(right.schema, _null_pairs(self, other, on, only_mixed_signs=True))


def _null_pairs(left: Bag, right: Bag, on, *, only_mixed_signs):
    def is_null(schema: Schema, row, names):
        return names and all(row[schema.position(name)] is None for name in names)

    for row, count in left:
        for other_row, other_count in right:
            nulls = is_null(left.schema, row, [a for a, _ in on]) and is_null(
                right.schema, other_row, [b for _, b in on]
            )
            # Counts that ignore each other, as when a sign is looked at once too often.
            if nulls and only_mixed_signs and count * other_count < 0:
                yield row + other_row, 1
            elif nulls and not only_mixed_signs:
                yield row + other_row, count * other_count


@pytest.fixture(scope="module")
def known_cases():
    return drawn(cases(), 150)


DISTRIBUTIVITY = [law for law in LAWS if law.startswith("join distributes over")]


@pytest.mark.parametrize(
    ("broken", "laws"),
    [
        (without_signs, DISTRIBUTIVITY),
        (without_duplicates, DISTRIBUTIVITY),
        (null_meets_null_of_the_other_sign, DISTRIBUTIVITY),
        (null_meets_null, ["join keys are equalities"]),
    ],
)
def test_a_broken_join_breaks_the_laws(monkeypatch, known_cases, broken, laws):
    check_all(known_cases, laws)
    monkeypatch.setattr(Bag, "join", broken)
    with pytest.raises(LawBroken):
        check_all(known_cases, laws)


def test_the_comparison_of_batches_finds_the_case_that_differs():
    schema = Schema.of(**{CASE: INTEGER, "x": STRING})
    good = Bag.of(schema, [(0, "a"), (7, "b"), (9, "c")])
    bad = Bag.of(schema, [(0, "a"), (7, "B"), (9, "c")])
    with pytest.raises(LawBroken, match=r"case 7.*Spark"):
        compare_case_by_case("a law", bad, good)
