"""Random view definitions, in the form in which the parser gives them."""

from __future__ import annotations

import datetime as dt
import decimal
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from viewkeeper.algebra.expressions import (
    TRUE,
    Aggregate,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Output,
    columns_of,
)
from viewkeeper.algebra.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGER_MAX,
    INTEGER_MIN,
    LOCAL_TIMESTAMP,
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    canonical,
    decimal_type,
)
from viewkeeper.sql.headers import PROTOCOLS, PUBLISH, REFRESH, SETTINGS
from viewkeeper.sql.naming import canonically_named
from viewkeeper.sql.where.predicates import settled
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import Grouping, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.level import DECLARABLE, Level

DECIMAL = decimal_type(5, 2)
TYPES = (INTEGER, DOUBLE, DECIMAL, STRING, BOOLEAN, BINARY, DATE, TIMESTAMP, LOCAL_TIMESTAMP)
ORDERED = ("=", "<>", "<", "<=", ">", ">=", "<=>")

texts = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(
    ["", "'", "\\", "\\'", "it's", "--", "/*", "\n", "\\%", "${x}", "{{", '"', "''", "\\n"]
)
names = st.sampled_from(
    ["a", "B", "c1", "_x", "select", "from", "date", "order", "größe", "a b", "x`y", "1st", "漢字",
     "count", "null", "true", "div", "left", "5L", "year", "a-b", "a'b", "a\\b", "--", "day"]
)  # fmt: skip
columns = names | st.sampled_from(["a.b", ".", "A", "b"])


def values(type: Type) -> st.SearchStrategy[Any]:
    found: dict[Type, st.SearchStrategy[Any]] = {
        INTEGER: st.integers(INTEGER_MIN, INTEGER_MAX) | st.integers(-2, 2),
        DOUBLE: st.floats(width=64),
        DECIMAL: st.decimals(-999, 999, places=2),
        STRING: texts,
        BOOLEAN: st.booleans(),
        BINARY: st.binary(max_size=4),
        DATE: st.dates(),
        TIMESTAMP: st.datetimes(
            dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.just(dt.UTC)
        ),
        LOCAL_TIMESTAMP: st.datetimes(),
    }
    return found[type]


def literals(type: Type) -> st.SearchStrategy[Expression]:
    return (st.none() | values(type)).map(lambda value: Literal(canonical(value, type), type))


@lru_cache(maxsize=256)
def expressions(type: Type, schema: Schema, depth: int) -> st.SearchStrategy[Expression]:
    """Expressions of the type over the schema."""
    leaves = literals(type)
    present = [Column(field.name) for field in schema if field.type == type]
    if present:
        leaves = st.sampled_from(present) | leaves
    if type == DECIMAL:
        leaves |= st.just(Literal(decimal.Decimal("1.50"), DECIMAL))
    if depth == 0:
        return leaves

    def inner(of: Type) -> st.SearchStrategy[Any]:
        return expressions(of, schema, depth - 1)

    same = inner(type)
    built: list[st.SearchStrategy[Expression]] = [
        st.builds(lambda c, a, b: Case(((c, a),), b), inner(BOOLEAN), same, st.none() | same),
        st.builds(lambda a, b: Call("coalesce", (a, b)), same, same),
        st.builds(lambda a, b: Call("nullif", (a, b)), same, same),
        st.builds(lambda a: Cast(a, type), same),
    ]
    return leaves | st.one_of(built + _of_type(type, inner))


def _of_type(type: Type, inner: Any) -> list[st.SearchStrategy[Expression]]:
    if type == INTEGER:
        operators = st.sampled_from(["+", "-", "*", "%", "div"])
        return [
            st.builds(Negate, inner(INTEGER)),
            st.builds(Arithmetic, operators, inner(INTEGER), inner(INTEGER)),
            st.builds(lambda a: Call("length", (a,)), inner(STRING)),
            st.builds(lambda a: Call("year", (a,)), inner(DATE)),
            st.builds(lambda a: Cast(a, INTEGER), inner(STRING)),
        ]
    if type == DOUBLE:
        return [
            st.builds(Negate, inner(DOUBLE)),
            st.builds(Arithmetic, st.sampled_from("+-*/%"), inner(DOUBLE), inner(DOUBLE)),
            st.builds(lambda a, b: Arithmetic("/", a, b), inner(INTEGER), inner(INTEGER)),
            st.builds(lambda a: Cast(a, DOUBLE), inner(DECIMAL)),
        ]
    if type == DECIMAL:
        operands = (st.sampled_from("+-*/%"), inner(DECIMAL), inner(INTEGER))
        return [
            st.builds(Negate, inner(DECIMAL)),
            st.builds(Cast, st.builds(Arithmetic, *operands), st.just(DECIMAL)),
        ]
    if type == STRING:
        return [
            st.builds(lambda a, b: Call("concat", (a, b)), inner(STRING), inner(STRING)),
            st.builds(lambda a: Call("upper", (a,)), inner(STRING)),
            st.builds(
                lambda *a: Call("substring", a), inner(STRING), inner(INTEGER), inner(INTEGER)
            ),
            st.builds(lambda a: Cast(a, STRING), inner(INTEGER)),
        ]
    if type == DATE:
        return [st.builds(lambda a: Cast(a, DATE), inner(LOCAL_TIMESTAMP))]
    return _conditions(inner) if type == BOOLEAN else []


def _conditions(inner: Any) -> list[st.SearchStrategy[Expression]]:
    some = st.lists(inner(BOOLEAN), min_size=2, max_size=3).map(tuple)
    patterns = st.sampled_from(["a%", "_", "\\%", "\\\\", "it's", ""])
    types = st.sampled_from(TYPES)

    def compared(type: Type) -> st.SearchStrategy[Expression]:
        return st.builds(Comparison, st.sampled_from(ORDERED), inner(type), inner(type))

    def listed(type: Type) -> st.SearchStrategy[Expression]:
        options = st.lists(inner(type), min_size=1, max_size=2).map(tuple)
        return st.builds(InList, inner(type), options)

    return [
        st.builds(And, some),
        st.builds(Or, some),
        st.builds(Not, inner(BOOLEAN)),
        st.builds(Like, inner(STRING), patterns),
        types.flatmap(compared),
        types.flatmap(listed),
        types.flatmap(inner).map(IsNull),
    ]


@st.composite
def catalogs(draw: Any) -> Catalog:
    relations = []
    for source in draw(st.lists(names, min_size=1, max_size=2, unique_by=str.casefold)):
        for relation in draw(st.lists(names, min_size=1, max_size=2, unique_by=str.casefold)):
            schema = draw(st.lists(columns, min_size=1, max_size=4, unique=True))
            fields = tuple(Field(name, draw(st.sampled_from(TYPES))) for name in schema)
            schema_part = draw(st.sampled_from(["", "public.", "a b."]))
            name = RelationName(source, schema_part + relation)
            relations.append(CatalogRelation(name, Schema(fields), (fields[0].name,)))
    return Catalog(tuple(relations))


@st.composite
def definitions(draw: Any) -> tuple[ViewDefinition, Catalog]:
    catalog = draw(catalogs())
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    output_names = draw(
        st.lists(columns, min_size=len(types), max_size=len(types), unique_by=str.casefold)
    )
    shape = list(zip(output_names, types, strict=True))
    terms = tuple(draw(_terms(catalog, shape)) for _ in range(draw(st.integers(1, 2))))
    level = draw(st.sampled_from(DECLARABLE))
    # Blocks are for complete views alone.
    known = [n for n in SETTINGS if n != "block" or level is Level.COMPLETE]
    settings = draw(st.lists(st.sampled_from(known), unique=True))
    return (
        ViewDefinition(
            "v",
            terms,
            level,
            draw(st.none() | st.sampled_from(PROTOCOLS)),
            tuple((name, draw(_setting(name, terms))) for name in settings),
        ),
        catalog,
    )


def _setting(name: str, terms: tuple[Term, ...]) -> st.SearchStrategy[str]:
    if name == "refresh":
        return st.sampled_from(REFRESH)
    if name == "keep":
        return st.sampled_from([str(o.name) for term in terms for o in term.occurrences])
    if name == "publish":
        return st.sampled_from(PUBLISH)
    if name == "block":
        return st.sampled_from(["1", "5"])
    return st.sampled_from(["5s", "a b", "x: y"])


@st.composite
def _terms(draw: Any, catalog: Catalog, shape: list[tuple[str, Type]]) -> Term:
    aliases = draw(st.lists(names, min_size=1, max_size=3, unique_by=str.casefold))
    relations = [draw(st.sampled_from(catalog.relations)) for _ in aliases]
    occurrences = tuple(
        Occurrence(alias, r.name, r.schema, r.key)
        for alias, r in zip(aliases, relations, strict=True)
    )
    joined = Term(occurrences, (), ()).joined_schema
    conditions = expressions(BOOLEAN, joined, 2).filter(_is_predicate)
    predicates = tuple(draw(st.lists(conditions, max_size=2, unique=True)))
    distinct = draw(st.booleans())
    if draw(st.booleans()):
        grouping, outputs = draw(_groupings(joined, shape))
        return Term(occurrences, predicates, outputs, grouping, distinct)
    outputs = tuple(Output(name, draw(expressions(type, joined, 2))) for name, type in shape)
    return Term(occurrences, predicates, outputs, None, distinct)


def _is_predicate(condition: Expression) -> bool:
    """Whether it is one as the parser leaves it: no constant, nothing to take apart."""
    return bool(columns_of(condition)) and settled(condition) == (condition,)


@st.composite
def _groupings(
    draw: Any, joined: Schema, shape: list[tuple[str, Type]]
) -> tuple[Grouping, tuple[Output, ...]]:
    """Each output shows a key or min of something as it is, or says something about a count."""
    keys: list[Output] = []
    aggregates: list[Aggregate] = []
    outputs: list[Output] = []
    for index, (name, type) in enumerate(shape):
        expression = draw(expressions(type, joined, 1))
        known = [key.expression for key in keys] + [a.argument for a in aggregates]
        if columns_of(expression) and expression not in known and draw(st.booleans()):
            keys.append(Output(f"#k{index}", expression))
            outputs.append(Output(name, Column(f"#k{index}")))
        elif expression not in known:
            distinct = draw(st.booleans())
            aggregates.append(Aggregate(f"#a{index}", "min", expression, distinct))
            outputs.append(Output(name, Column(f"#a{index}")))
        else:
            outputs.append(Output(name, Literal(None, type)))
    having: Expression = TRUE
    if draw(st.booleans()) or not (keys or aggregates):
        aggregates.append(Aggregate("#n", "count"))
        having = Comparison(">", Column("#n"), Literal(draw(st.integers(0, 3)), INTEGER))
    return canonically_named(Grouping(tuple(keys), tuple(aggregates), having), tuple(outputs))
