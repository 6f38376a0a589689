"""Scalar expressions over the columns of a relation, as data.

The same tree is evaluated row by row on a `Bag`, translated to Spark columns, and printed as SQL for
a source. It means what Spark SQL means by it in ANSI mode: three-valued logic, no silent overflow.

Names in `Column` are the full names of a relation's columns; inside a view they are qualified by the
occurrence they belong to (``o.cust_id``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from viewkeeper.algebra.types import BOOLEAN, Type, Value


@dataclass(frozen=True, slots=True)
class Column:
    """The value of the column ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a known type; ``value`` may be None, a typed NULL."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``+ - * / %`` and ``div``. ``/`` of two integers is a double."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Comparison:
    """``= <> < <= > >=``, and ``<=>``, which treats NULL as equal to NULL."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expression


@dataclass(frozen=True, slots=True)
class InList:
    """``operand IN (options)``: NULL when nothing matches and a NULL took part."""

    operand: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """``operand LIKE pattern``, with ``%`` and ``_``; a backslash escapes."""

    operand: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE WHEN condition THEN result … ELSE otherwise END``; without ELSE it is NULL."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class Cast:
    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `viewkeeper.algebra.functions`, by its lower-case name."""

    function: str
    arguments: tuple[Expression, ...]


Expression = (
    Column
    | Literal
    | Negate
    | Arithmetic
    | Comparison
    | And
    | Or
    | Not
    | IsNull
    | InList
    | Like
    | Case
    | Cast
    | Call
)

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


@dataclass(frozen=True, slots=True)
class Output:
    """One column of a projection: ``expression AS name``."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate column: count, sum, avg, min or max of ``argument``, or count(*) without one."""

    name: str
    function: str
    argument: Expression | None = None
    distinct: bool = False


AGGREGATE_FUNCTIONS = ("count", "sum", "avg", "min", "max")


def null_if(left: Expression, right: Expression, type: Type) -> Case:
    """What ``nullif(left, right)`` means; ``type`` is that of ``left``."""
    return Case(((Comparison("=", left, right), Literal(None, type)),), left)


def conjunction(predicates: tuple[Expression, ...]) -> Expression:
    """All of them at once; TRUE when there are none."""
    match predicates:
        case ():
            return TRUE
        case (one,):
            return one
        case _:
            return And(predicates)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction, nested ANDs taken apart, TRUE dropped."""
    match expression:
        case And(operands):
            return tuple(part for operand in operands for part in conjuncts(operand))
        case Literal(value=True):
            return ()
        case _:
            return (expression,)


def children(expression: Expression) -> Iterator[Expression]:
    """The direct sub-expressions, left to right."""
    match expression:
        case Case(branches, otherwise):
            for condition, result in branches:
                yield condition
                yield result
            if otherwise is not None:
                yield otherwise
        case _:
            for field in fields(expression):
                yield from _expressions_in(getattr(expression, field.name))


def _expressions_in(part: object) -> Iterator[Expression]:
    if isinstance(part, Expression):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _expressions_in(item)


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of all columns that the expression reads."""
    if isinstance(expression, Column):
        return frozenset({expression.name})
    return frozenset().union(*(columns_of(child) for child in children(expression)))


def transformed(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """The tree with every node replaced, top down, for which ``change`` gives another one."""
    changed = change(expression)
    if changed is not None:
        return changed
    if isinstance(expression, Case):
        return Case(
            tuple(
                (transformed(condition, change), transformed(result, change))
                for condition, result in expression.branches
            ),
            None if expression.otherwise is None else transformed(expression.otherwise, change),
        )
    parts: dict[str, object] = {}
    for field in fields(expression):
        part = getattr(expression, field.name)
        if isinstance(part, Expression):
            parts[field.name] = transformed(part, change)
        elif isinstance(part, tuple) and part and isinstance(part[0], Expression):
            parts[field.name] = tuple(transformed(item, change) for item in part)
    return replace(expression, **parts) if parts else expression  # type: ignore[arg-type]


def substituted(expression: Expression, columns: dict[str, Expression]) -> Expression:
    """The expression with every column named in ``columns`` replaced by what stands there."""

    def change(node: Expression) -> Expression | None:
        return columns.get(node.name) if isinstance(node, Column) else None

    return transformed(expression, change)
