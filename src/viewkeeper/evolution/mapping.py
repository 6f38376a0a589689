"""Evolution mappings: how one version of a view became the next, pair by pair; and their merging.

Paper: DyDa, section 7.2 and Table 6. A mapping lists what happened to the relations, attributes and
conditions of a definition; what it does not list stayed. Mappings of several versions are merged from
the oldest to the newest:

| first | then | merged |
|---|---|---|
| R → S | S → T | R → T |
| R → S | drop S | drop R |
| a → b | b → c | a → c |
| a → b | drop b | drop a |
| add condition | drop it | nothing |
| any other two | | both |

Where we differ: a pair knows the occurrence (alias) it belongs to, because a relation may take part
twice; and whether it only renames, because then the rows are the same and no extent changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from viewkeeper.algebra.expressions import Expression
from viewkeeper.evolution.quality import Extent
from viewkeeper.views.definition import RelationName
from viewkeeper.views.spark_sql import expression_sql


@dataclass(frozen=True)
class Place:
    """A relation at one occurrence of a view."""

    alias: str
    relation: RelationName

    def __str__(self) -> str:
        return str(self.relation)


@dataclass(frozen=True)
class Attribute:
    """An attribute at one occurrence; ``name`` may be the text of an expression that stands for it."""

    alias: str
    relation: RelationName
    name: str

    def __str__(self) -> str:
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True)
class RelationMove:
    """``before`` None: the relation was added; ``after`` None: it was dropped."""

    before: Place | None
    after: Place | None
    is_rename: bool = False

    def __str__(self) -> str:
        return _arrow(self.before, self.after)


@dataclass(frozen=True)
class AttributeMove:
    """``after`` None: the view does without it."""

    before: Attribute
    after: Attribute | None
    is_rename: bool = False

    def __str__(self) -> str:
        return _arrow(self.before, self.after)


@dataclass(frozen=True)
class ConditionMove:
    """A condition added (``before`` None), dropped (``after`` None) or carried over to other columns."""

    before: Expression | None
    after: Expression | None
    is_rename: bool = False

    def __str__(self) -> str:
        texts = (None if e is None else expression_sql(e, str) for e in (self.before, self.after))
        return _arrow(*texts)


def _arrow(before: Any, after: Any) -> str:
    if before is None:
        return f"{after} added"
    return f"{before} dropped" if after is None else f"{before} → {after}"


@dataclass(frozen=True)
class EvolutionMapping:
    """What happened between two versions of a view.

    ``touched``: the occurrences, of either version, whose rows may differ; others are the same rows,
    perhaps under other names. ``trusted``: the rows are known to be equal without a look.
    """

    relations: tuple[RelationMove, ...] = ()
    attributes: tuple[AttributeMove, ...] = ()
    conditions: tuple[ConditionMove, ...] = ()
    touched: frozenset[str] = frozenset()
    extent: Extent = Extent.EQUAL
    trusted: bool = True

    def merged(self, later: EvolutionMapping) -> EvolutionMapping:
        """This mapping and a later one as one (Table 6)."""
        return EvolutionMapping(
            _merged(self.relations, later.relations),
            _merged(self.attributes, later.attributes),
            _merged(self.conditions, later.conditions),
            self.touched | later.touched,
            self.extent.then(later.extent),
            self.trusted and later.trusted,
        )

    def renamed_column(self, alias: str, column: str) -> str:
        """What an untouched occurrence's column is called in the later version."""
        for move in self.attributes:
            if (move.before.alias, move.before.name) == (alias, column) and move.after is not None:
                return move.after.name
        return column

    def lines(self) -> tuple[str, ...]:
        """One line per pair, attributes first, as the paper prints them."""
        return tuple(map(str, (*self.attributes, *self.relations, *self.conditions)))


Move = RelationMove | AttributeMove | ConditionMove
M = TypeVar("M", bound=Move)


def _merged(first: tuple[M, ...], second: tuple[M, ...]) -> tuple[M, ...]:
    waiting = list(second)
    result: list[M] = []
    for move in first:
        following = next(
            (m for m in waiting if move.after is not None and m.before == move.after), None
        )
        if following is None:
            result.append(move)
            continue
        waiting.remove(following)
        if move.before is None and following.after is None:
            continue  # added and dropped again
        both = move.is_rename and following.is_rename
        # Both are moves of one kind, so what the second leads to fits the first.
        result.append(replace(move, after=following.after, is_rename=both))  # type: ignore[arg-type]
    return (*result, *waiting)
