"""The laws of the algebra, written once for every body of it.

A law takes a `World` and gives two relations that must be equal. It uses the `Relation` interface and
nothing else, so the same function runs on bags and on Spark.

For Spark many cases are checked by one job: `batched` puts the number of its case in front of every
row and makes it part of every join key, so that cases never meet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from laws.values import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LOCAL_TIMESTAMP,
    MONEY,
    STRING,
    TIMESTAMP,
    WIDE,
    Line,
    lines,
    pools,
    schema_of,
    special_values,
)
from viewkeeper.algebra import Field, Schema, Type
from viewkeeper.algebra.expressions import (
    And,
    Call,
    Case,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Or,
    Output,
    conjunction,
)
from viewkeeper.algebra.relation import JoinKeys

CASE = "r.case"


@dataclass(frozen=True)
class Setting:
    """What the cases of a batch share: relations R, S, T and how they meet; conditions; outputs."""

    r: Schema
    s: Schema
    t: Schema
    r_s: JoinKeys
    s_t: JoinKeys
    p: Expression  # over R
    q: Expression  # over R
    w: Expression  # over R and S together
    outputs: tuple[Output, ...]  # over R


@dataclass(frozen=True)
class Contents:
    """Lines of signed rows: three relations like R, two like S, one like T."""

    a: list[Line]
    b: list[Line]
    c: list[Line]
    s: list[Line]
    s2: list[Line]
    t: list[Line]


class World:
    """The contents of a case, loaded into one body."""

    def __init__(
        self, setting: Setting, contents: Contents, load: Callable[[Schema, list[Line]], Any]
    ) -> None:
        self.setting = setting
        self.a, self.b, self.c = (
            load(setting.r, found) for found in (contents.a, contents.b, contents.c)
        )
        self.s, self.s2 = load(setting.s, contents.s), load(setting.s, contents.s2)
        self.t = load(setting.t, contents.t)
        self.none = load(setting.r, [])
        self.s_none = load(setting.s, [])

    def rs(self, left: Any, right: Any) -> Any:
        return left.join(right, self.setting.r_s)

    def st(self, left: Any, right: Any) -> Any:
        return left.join(right, self.setting.s_t)


def in_order(relation: Any, names: tuple[str, ...]) -> Any:
    return relation.select(tuple(Output(name, Column(name)) for name in names))


def _mirrored(keys: JoinKeys) -> JoinKeys:
    return tuple((right, left) for left, right in keys)


def _joined_names(world: World) -> tuple[str, ...]:
    return world.setting.r.names + world.setting.s.names


def _as_condition(keys: JoinKeys) -> Expression:
    return conjunction(tuple(Comparison("=", Column(a), Column(b)) for a, b in keys))


def _twice_inverted(relation: Any) -> Any:
    inverse = -relation
    return -inverse


def _tagged(world: World, relation: Any) -> Any:
    """With a column of copies: two where a condition holds, and none, said either way, elsewhere."""
    p, q = world.setting.p, world.setting.q
    none = Case(((q, Literal(0, INTEGER)),), Literal(None, INTEGER))
    copies = Output("copies", Case(((p, Literal(2, INTEGER)),), none))
    columns = tuple(Output(name, Column(name)) for name in relation.schema.names)
    return relation.select((*columns, copies))


Law = Callable[[World], tuple[Any, Any]]

LAWS: dict[str, Law] = {
    # ⊕ and ⊖ make an abelian group
    "sum is commutative": lambda w: (w.a + w.b, w.b + w.a),
    "sum is associative": lambda w: ((w.a + w.b) + w.c, w.a + (w.b + w.c)),
    "nothing is neutral": lambda w: (w.a + w.none, w.a),
    "every relation has an inverse": lambda w: (w.a - w.a, w.none),
    "the inverse of the inverse is the relation": lambda w: (_twice_inverted(w.a), w.a),
    "the inverse of a sum": lambda w: (-(w.a + w.b), -w.a - w.b),
    # ⊗ is bilinear
    "join is commutative up to the order of columns": lambda w: (
        w.rs(w.a, w.s),
        in_order(w.s.join(w.a, _mirrored(w.setting.r_s)), _joined_names(w)),
    ),
    "join is associative": lambda w: (
        w.st(w.rs(w.a, w.s), w.t),
        w.rs(w.a, w.st(w.s, w.t)),
    ),
    "join distributes over sum, right": lambda w: (
        w.rs(w.a, w.s + w.s2),
        w.rs(w.a, w.s) + w.rs(w.a, w.s2),
    ),
    "join distributes over sum, left": lambda w: (
        w.rs(w.a + w.b, w.s),
        w.rs(w.a, w.s) + w.rs(w.b, w.s),
    ),
    "join distributes over difference, right": lambda w: (
        w.rs(w.a, w.s - w.s2),
        w.rs(w.a, w.s) - w.rs(w.a, w.s2),
    ),
    "join distributes over difference, left": lambda w: (
        w.rs(w.a - w.b, w.s),
        w.rs(w.a, w.s) - w.rs(w.b, w.s),
    ),
    "join with a condition distributes over sum": lambda w: (
        (w.a + w.b).join(w.s, w.setting.r_s, w.setting.w),
        w.a.join(w.s, w.setting.r_s, w.setting.w) + w.b.join(w.s, w.setting.r_s, w.setting.w),
    ),
    "join with nothing is nothing, right": lambda w: (
        w.rs(w.a, w.s_none),
        w.rs(w.none, w.s_none),
    ),
    "join with nothing is nothing, left": lambda w: (w.rs(w.none, w.s), w.rs(w.none, w.s_none)),
    "signs move out of a join": lambda w: (w.rs(-w.a, w.s), -w.rs(w.a, w.s)),
    # σ and π are linear, and σ goes where it may
    "selection is linear over sum": lambda w: (
        (w.a + w.b).where(w.setting.p),
        w.a.where(w.setting.p) + w.b.where(w.setting.p),
    ),
    "selection is linear over difference": lambda w: (
        (w.a - w.b).where(w.setting.p),
        w.a.where(w.setting.p) - w.b.where(w.setting.p),
    ),
    "projection is linear over sum": lambda w: (
        (w.a + w.b).select(w.setting.outputs),
        w.a.select(w.setting.outputs) + w.b.select(w.setting.outputs),
    ),
    "projection is linear over difference": lambda w: (
        (w.a - w.b).select(w.setting.outputs),
        w.a.select(w.setting.outputs) - w.b.select(w.setting.outputs),
    ),
    "copies are linear over difference": lambda w: (
        _tagged(w, w.a - w.b).copied("copies"),
        _tagged(w, w.a).copied("copies") - _tagged(w, w.b).copied("copies"),
    ),
    "copies are counts": lambda w: (
        _tagged(w, w.a).copied("copies"),
        _tagged(w, w.a.where(w.setting.p) + w.a.where(w.setting.p)),
    ),
    "selections commute": lambda w: (
        w.a.where(w.setting.p).where(w.setting.q),
        w.a.where(w.setting.q).where(w.setting.p),
    ),
    "two selections are one": lambda w: (
        w.a.where(w.setting.p).where(w.setting.q),
        w.a.where(And((w.setting.p, w.setting.q))),
    ),
    "selection moves into a join": lambda w: (
        w.rs(w.a, w.s).where(w.setting.p),
        w.rs(w.a.where(w.setting.p), w.s),
    ),
    "a join's condition is a selection after it": lambda w: (
        w.a.join(w.s, w.setting.r_s, w.setting.w),
        w.rs(w.a, w.s).where(w.setting.w),
    ),
    "join keys are equalities": lambda w: (
        w.rs(w.a, w.s),
        w.a.join(w.s, (), _as_condition(w.setting.r_s)),
    ),
    # consolidation can't be seen, nor can zeros
    "consolidation changes nothing": lambda w: ((w.a + w.b).consolidated(), w.a + w.b),
    "consolidation is idempotent": lambda w: (
        (w.a + w.b).consolidated().consolidated(),
        (w.a + w.b).consolidated(),
    ),
    "consolidation before a join changes nothing": lambda w: (
        w.rs((w.a - w.b).consolidated(), w.s),
        w.rs(w.a - w.b, w.s),
    ),
    "what cancels is not there": lambda w: ((w.a + w.b - w.a).support(), w.b.support()),
    "what cancels joins with nothing": lambda w: (w.rs(w.a + w.b - w.a, w.s), w.rs(w.b, w.s)),
    # not linear, but idempotent
    "support is idempotent": lambda w: (w.a.support().support(), w.a.support()),
    "support ignores signs": lambda w: ((-w.a).support(), w.a.support()),
    "the positive part is idempotent": lambda w: (w.a.positive().positive(), w.a.positive()),
    "a relation is its positive part less that of its inverse": lambda w: (
        w.a.positive() - (-w.a).positive(),
        w.a,
    ),
    # names carry no meaning
    "renaming there and back changes nothing": lambda w: (
        w.a.renamed(f"x.{n}" for n in w.setting.r.names).renamed(w.setting.r.names),
        w.a,
    ),
}


class LawBroken(AssertionError):
    """The two sides of a law differ; says which law, and by what."""

    def __init__(self, law: str, left: Any, right: Any, where: str = "") -> None:
        super().__init__(f"{law}{where}\n  left  {left!r}\n  right {right!r}")
        self.law = law


# -- random settings and contents ------------------------------------------------------------------


def setting_of(first: Type, second: Type, third: Type, fourth: Type, fifth: Type) -> Setting:
    """R(k, v, w, u) meets S(k, l, v) on k, S meets T(l, v) on l.

    Conditions that are true of some rows, false of some and unknown of some; random expressions are
    the business of `test_differential`.
    """
    # Integers also meet decimals, as join keys of different types.
    met = INTEGER if first == MONEY else first
    k, v, w = Column("r.k"), Column("r.v"), Column("r.w")
    p = Or(
        (Comparison("<=", k, _middle(first)), And((IsNull(k), Comparison("<>", v, _middle(third)))))
    )
    return Setting(
        r=schema_of(r_k=first, r_v=third, r_w=fourth, r_u=fifth),
        s=schema_of(s_k=met, s_l=second, s_v=third),
        t=schema_of(t_l=second, t_v=fourth),
        r_s=(("r.k", "s.k"),),
        s_t=(("s.l", "t.l"),),
        p=p,
        q=Or((IsNull(v), Comparison(">=", w, _middle(fourth)))),
        w=Or((Comparison("<=>", v, Column("s.v")), IsNull(w))),
        outputs=(
            Output("value", Call("coalesce", (v, _middle(third)))),
            Output("chosen", Case(((p, w),), None)),
        ),
    )


def _middle(type: Type) -> Literal:
    return Literal(special_values(type)[1], type)


# Two key columns and three others. The first two settings have every type between them.
_TYPES_OF_SETTINGS = (
    (DOUBLE, STRING, WIDE, BOOLEAN, LOCAL_TIMESTAMP),
    (MONEY, TIMESTAMP, BINARY, DATE, INTEGER),
    (LOCAL_TIMESTAMP, INTEGER, STRING, DOUBLE, MONEY),
    (BINARY, BOOLEAN, DOUBLE, TIMESTAMP, DATE),
    (STRING, WIDE, MONEY, LOCAL_TIMESTAMP, BINARY),
    (DATE, DOUBLE, INTEGER, STRING, WIDE),
)
SETTINGS = tuple(setting_of(*types) for types in _TYPES_OF_SETTINGS)


@st.composite
def contents_for(draw: st.DrawFn, setting: Setting) -> Contents:
    values = draw(pools((setting.r, setting.s, setting.t)))
    r, s, t = (lines(schema, values, 4) for schema in (setting.r, setting.s, setting.t))
    return Contents(*(draw(strategy) for strategy in (r, r, r, s, s, t)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Setting, Contents]:
    setting = draw(st.sampled_from(SETTINGS))
    return setting, draw(contents_for(setting))


# -- many cases as one -----------------------------------------------------------------------------


def batched(setting: Setting, contents: list[Contents]) -> tuple[Setting, Contents]:
    """All cases as one, kept apart by a column that takes part in every join."""
    together = {
        name: [
            ((number, *row), count)
            for number, case in enumerate(contents)
            for row, count in getattr(case, name)
        ]
        for name in ("a", "b", "c", "s", "s2", "t")
    }
    apart = replace(
        setting,
        r=_numbered(setting.r, CASE),
        s=_numbered(setting.s, "s.case"),
        t=_numbered(setting.t, "t.case"),
        r_s=((CASE, "s.case"), *setting.r_s),
        s_t=(("s.case", "t.case"), *setting.s_t),
        outputs=(Output(CASE, Column(CASE)), *setting.outputs),
    )
    return apart, Contents(**together)


def _numbered(schema: Schema, name: str) -> Schema:
    return Schema((Field(name, INTEGER), *schema.fields))
