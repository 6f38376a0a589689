"""Views with steps: what one SELECT can't say, evaluated and cut down to the columns in use."""

from viewkeeper.algebra import Bag, Schema
from viewkeeper.algebra.expressions import (
    Aggregate,
    Column,
    Comparison,
    Literal,
    Output,
)
from viewkeeper.algebra.types import INTEGER
from viewkeeper.views import Grouping, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.assembly import WholeView, evaluated
from viewkeeper.views.definition import LOCAL, Step
from viewkeeper.views.pruning import pruned

L, R = RelationName("s", "l"), RelationName("t", "r")
L_SCHEMA = Schema.of(id=INTEGER, a=INTEGER, unread=INTEGER)
R_SCHEMA = Schema.of(a=INTEGER, b=INTEGER)
TAGGED, MATCHED = RelationName(LOCAL, "tagged"), RelationName(LOCAL, "matched")
CONTENTS = {
    L: Bag.of(L_SCHEMA, [(1, 1, 0), (1, 1, 0), (2, 2, 0), (3, None, 0)]),
    R: Bag.of(R_SCHEMA, [(1, 10), (1, 11), (5, 12)]),
}


def number(value: int) -> Literal:
    return Literal(value, INTEGER)


def tagged() -> Step:
    """Rows of L as (1, 0), and of L ⋈ R as (0, 1)."""
    left, right = Occurrence("l", L, L_SCHEMA), Occurrence("r", R, R_SCHEMA)
    columns = (Output("id", Column("l.id")), Output("a", Column("l.a")))
    alone = Term((left,), (), (*columns, Output("here", number(1)), Output("met", number(0))))
    joined = Term(
        (left, right),
        (Comparison("=", Column("l.a"), Column("r.a")),),
        (*columns, Output("here", number(0)), Output("met", number(1))),
    )
    return Step(TAGGED, (alone, joined))


def those_that(operator: str) -> Term:
    """Rows of L that met a row of R, or that did not, as often as they are there."""
    rows = Occurrence("g", TAGGED, tagged().schema)
    grouping = Grouping(
        (Output("id", Column("g.id")), Output("a", Column("g.a"))),
        (Aggregate("copies", "sum", Column("g.here")), Aggregate("met", "sum", Column("g.met"))),
        Comparison(operator, Column("met"), number(0)),
        copies="copies",
    )
    return Term((rows,), (), (Output("id", Column("id")),), grouping)


def test_semi_and_anti_joins_keep_the_copies_of_the_left_side():
    def found(operator: str) -> Bag:
        view = ViewDefinition("v", (those_that(operator),), steps=(tagged(),))
        return evaluated(view, CONTENTS.__getitem__)

    schema = Schema.of(id=INTEGER)
    assert found(">") == Bag.of(schema, [(1,), (1,)])
    assert found("=") == Bag.of(schema, [(2,), (3,)])


def two_steps() -> ViewDefinition:
    step = Step(MATCHED, (those_that(">"),))
    rows = Occurrence("m", MATCHED, step.schema)
    total = Term(
        (rows,),
        (),
        (Output("n", Column("n")),),
        Grouping((), (Aggregate("n", "count"),)),
    )
    return ViewDefinition("v", (total,), steps=(tagged(), step))


def test_a_step_may_read_an_earlier_step():
    whole = WholeView(two_steps())
    assert whole.evaluated(CONTENTS.__getitem__) == Bag.of(Schema.of(n=INTEGER), [(2,)])


def test_without_keys_there_is_one_row_also_over_nothing():
    empty = {name: rows - rows for name, rows in CONTENTS.items()}
    found = evaluated(two_steps(), empty.__getitem__)
    assert found == Bag.of(Schema.of(n=INTEGER), [(0,)])


def test_the_relations_of_a_view_are_those_of_its_steps_too():
    assert two_steps().relations == (L, R)
    assert two_steps().sources == ("s", "t")


def test_pruning_goes_through_the_steps():
    narrow = pruned(two_steps())
    read = {o.name: o.schema.names for term in narrow.all_terms for o in term.occurrences}
    assert read[L] == ("id", "a")
    assert read[R] == ("a",)
    cut = {L: CONTENTS[L].select(outputs("id", "a")), R: CONTENTS[R].select(outputs("a"))}
    assert evaluated(narrow, cut.__getitem__) == Bag.of(Schema.of(n=INTEGER), [(2,)])


def test_a_step_gives_only_what_is_read():
    wide = Step(
        MATCHED,
        (
            Term(
                (Occurrence("l", L, L_SCHEMA),),
                (),
                (Output("a", Column("a")), Output("most", Column("most"))),
                Grouping(
                    (Output("a", Column("l.a")),),
                    (Aggregate("most", "max", Column("l.unread")),),
                ),
            ),
        ),
    )
    rows = Occurrence("m", MATCHED, wide.schema)
    view = ViewDefinition("v", (Term((rows,), (), (Output("a", Column("m.a")),)),), steps=(wide,))
    narrow = pruned(view)
    assert narrow.steps[0].schema.names == ("a",)
    assert narrow.steps[0].terms[0].grouping.aggregates == ()
    assert [o.schema.names for term in narrow.all_terms for o in term.occurrences] == [
        ("a",),
        ("a",),
    ]


def test_a_step_that_removes_duplicates_keeps_its_columns():
    step = Step(
        MATCHED,
        (
            Term(
                (Occurrence("l", L, L_SCHEMA),),
                (),
                (Output("id", Column("l.id")), Output("a", Column("l.a"))),
                distinct=True,
            ),
        ),
    )
    rows = Occurrence("m", MATCHED, step.schema)
    view = ViewDefinition("v", (Term((rows,), (), (Output("a", Column("m.a")),)),), steps=(step,))
    assert pruned(view).steps[0].schema.names == ("id", "a")


def outputs(*names: str) -> tuple[Output, ...]:
    return tuple(Output(name, Column(name)) for name in names)
