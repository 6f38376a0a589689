"""The example of SWEEP's Figure 5: three sources, three updates, and a way to play it in any order."""

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import Column, Comparison, Output
from viewkeeper.algebra.types import INTEGER
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import Transaction
from viewkeeper.views import Occurrence, RelationName, Term, ViewDefinition

R1, R2, R3 = (RelationName(f"source{n}", f"r{n}") for n in (1, 2, 3))
SCHEMAS = {
    R1: Schema.of(a=INTEGER, b=INTEGER),
    R2: Schema.of(c=INTEGER, d=INTEGER),
    R3: Schema.of(e=INTEGER, f=INTEGER),
}
DEFINITION = ViewDefinition(
    "v",
    (
        Term(
            tuple(Occurrence(name.relation, name, schema) for name, schema in SCHEMAS.items()),
            (
                Comparison("=", Column("r1.b"), Column("r2.c")),
                Comparison("=", Column("r2.d"), Column("r3.e")),
            ),
            (Output("d", Column("r2.d")), Output("f", Column("r3.f"))),
        ),
    ),
)
VIEW = DEFINITION.schema


def change(name: RelationName, *signed: tuple[tuple[int, int], int]) -> Transaction:
    return Transaction(name.source, 1, ((name, Bag.signed(SCHEMAS[name], signed)),))


SCENARIO = Scenario(
    DEFINITION,
    {
        R1: Bag.of(SCHEMAS[R1], [(1, 3), (2, 3)]),
        R2: Bag.of(SCHEMAS[R2], [(3, 7)]),
        R3: Bag.of(SCHEMAS[R3], [(5, 6), (7, 8)]),
    },
    {
        R1.source: (change(R1, ((2, 3), -1)),),
        R2.source: (change(R2, ((3, 5), 1)),),
        R3.source: (change(R3, ((7, 8), -1)),),
    },
)

# The warehouse column of Figure 5, counts in brackets.
STATES = [
    Bag.signed(VIEW, [((7, 8), 2)]),
    Bag.signed(VIEW, [((5, 6), 2), ((7, 8), 2)]),
    Bag.signed(VIEW, [((5, 6), 2)]),
    Bag.signed(VIEW, [((5, 6), 1)]),
]


def columns(rows: object, *names: str) -> dict[tuple[object, ...], int]:
    """A partial as the paper prints it: some columns, with signed counts."""
    picked = rows.select(tuple(Output(name, Column(name)) for name in names))  # type: ignore[attr-defined]
    return dict(picked.to_bag())
