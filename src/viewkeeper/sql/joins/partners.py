"""Rows and what their partners say of them: the one way in which rows that match nothing are found.

To each row of the *left* side belong pairs with rows of another relation. A step holds both: every left
row, tagged as one copy of itself and saying nothing, and for every pair its left part, tagged as no
copy, with what the pair says. Grouped by the columns of the left side that gives each left row, in as
many copies as there are, and the sum (or the maximum) of what its pairs say. Semi and anti joins keep
groups by it, outer joins pad those without any pair, correlated subqueries read their value there.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
    Column,
    Comparison,
    Expression,
    Literal,
    Output,
)
from viewkeeper.algebra.types import INTEGER
from viewkeeper.sql.expressions.scope import Visible
from viewkeeper.sql.joins.flattening import Joined
from viewkeeper.sql.joins.gathering import Layout, distinct_predicates, stepped
from viewkeeper.sql.naming import canonically_named
from viewkeeper.sql.steps import Steps, occurrence_of
from viewkeeper.views.definition import Grouping, Term
from viewkeeper.views.names import free_name

ONE, ZERO = Literal(1, INTEGER), Literal(0, INTEGER)


@dataclass(frozen=True)
class Pairs:
    """Pairs of left rows with partners: the left side's columns in them, and what each pair says."""

    joined: Joined
    columns: tuple[Expression, ...]
    says: tuple[Expression, ...] = (ONE,)


@dataclass(frozen=True)
class Question:
    """What is asked of a row's pairs; ``nothing`` is what a row without pairs says itself."""

    name: str
    function: str = "sum"
    nothing: Literal = ZERO


# How many partners a row has.
HOW_MANY = Question("partners")


@dataclass(frozen=True)
class Lookup:
    """The left side, ``shape`` says with which columns, and its pairs, perhaps from several joins."""

    left: Joined
    shape: Layout
    pairs: tuple[Pairs, ...]
    questions: tuple[Question, ...] = (HOW_MANY,)

    def kept(self, steps: Steps, name: str, alias: str, *, with_partner: bool) -> Joined:
        """The left rows that have a partner, or those that have none; ``name`` is the step's."""
        having = Comparison(">" if with_partner else "=", Column(_answer(0)), ZERO)
        return self._grouped(steps, name, alias, having, ())

    def answered(self, steps: Steps, name: str, alias: str) -> Joined:
        """All left rows; the answers become the last values of the scope, named as the questions."""
        return self._grouped(steps, name, alias, TRUE, self.questions)

    def _grouped(
        self,
        steps: Steps,
        name: str,
        alias: str,
        having: Expression,
        shown: tuple[Question, ...],
    ) -> Joined:
        tagged = occurrence_of(steps.add(f"{name}_tags", self._tagged()), alias)
        columns = [Column(tagged.qualified(n)) for n in tagged.schema.names]
        width = len(self.shape.names)
        keys = tuple(Output(f"#key {i}", column) for i, column in enumerate(columns[:width]))
        copies, *answers = columns[width:]
        aggregates = tuple(
            Aggregate(_answer(i), question.function, answer)
            for i, (question, answer) in enumerate(zip(self.questions, answers, strict=True))
        )
        counted = Aggregate("#copies", "sum", copies)
        names = tagged.schema.names
        outputs = tuple(Output(n, Column(k.name)) for n, k in zip(names, keys, strict=False))
        outputs += tuple(
            Output(names[width + 1 + i], Column(_answer(i))) for i in range(len(shown))
        )
        grouping, outputs = canonically_named(
            Grouping(keys, (counted, *aggregates), having, counted.name), outputs
        )
        joined = stepped(
            steps.add(name, (Term((tagged,), (), outputs, grouping),)), self.shape, alias
        )
        (occurrence,) = joined.occurrences
        return joined.valuing(
            tuple(
                Visible(question.name, Column(occurrence.qualified(output.name)))
                for question, output in zip(shown, outputs[width:], strict=True)
            )
        )

    def _tagged(self) -> tuple[Term, ...]:
        """Left rows and pairs, one below the other: columns, copies, answers."""
        taken = {name.casefold() for name in self.shape.names}
        names = list(self.shape.names)
        for wanted in ("copies", *(question.name for question in self.questions)):
            names.append(free_name(wanted, taken))
            taken.add(names[-1].casefold())
        columns = tuple(output.expression for output in self.shape.outputs(0))
        nothing = tuple(question.nothing for question in self.questions)
        rows = [(self.left, (*columns, ONE, *nothing))]
        rows += [(pairs.joined, (*pairs.columns, ZERO, *pairs.says)) for pairs in self.pairs]
        return tuple(
            Term(
                joined.occurrences,
                distinct_predicates(joined),
                tuple(Output(n, e) for n, e in zip(names, expressions, strict=True)),
            )
            for joined, expressions in rows
        )


def _answer(index: int) -> str:
    return f"#{index}"
