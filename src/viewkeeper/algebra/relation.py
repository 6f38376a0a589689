"""What a relation can do: the interface behind which `Bag` and Spark's relation stand.

A relation is a bag of rows with signed counts: +1 for a row that is there (or comes in), −1 for one
that goes out. Protocols are written against this interface and nothing else, so the same code runs
in the simulator and on Spark.

| symbol | here | |
|---|---|---|
| ⊕ | ``a + b`` | counts add up |
| ⊖ | ``a - b``, ``-a`` | |
| ⊗ | ``a.join(b, on, where)`` | counts multiply |
| σ | ``a.where(predicate)`` | |
| π | ``a.select(outputs)``, ``a.only(names)`` | counts of rows that become equal add up |
| ⋉ | ``a.matching(columns, keys)`` | counts stay, where no key stands twice |
| | ``a.copied(column)`` | counts are multiplied by the column's value |
| ⊥ | ``a.is_empty()`` | no row has a count other than zero |

⊕ ⊖ ⊗ σ π and `copied` are linear in every operand: that is what incremental maintenance rests on. `support`,
`positive` and `grouped` are not, and a protocol must not push them through a sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from viewkeeper.algebra.expressions import TRUE, Aggregate, Column, Expression, Output
from viewkeeper.algebra.types import Schema

if TYPE_CHECKING:
    from viewkeeper.algebra.bag import Bag

# Column pairs (left, right) that must be equal; NULL equals nothing.
JoinKeys = tuple[tuple[str, str], ...]


class Relation(ABC):
    """A signed bag of rows over a `Schema`. Immutable: every operation gives a new relation."""

    schema: Schema

    @abstractmethod
    def __add__(self, other: Self) -> Self:
        """⊕. Both sides must have the same schema."""

    @abstractmethod
    def __neg__(self) -> Self:
        """Every count with the opposite sign."""

    def __sub__(self, other: Self) -> Self:
        """⊖."""
        return self + (-other)

    @abstractmethod
    def join(self, other: Self, on: JoinKeys = (), where: Expression = TRUE) -> Self:
        """⊗: pairs of rows that agree on ``on`` and satisfy ``where``, over both sides' columns.

        The two sides must not share a column name. Without ``on`` it is a product.
        """

    @abstractmethod
    def where(self, predicate: Expression) -> Self:
        """σ: the rows of which the predicate is true; unknown counts as not true."""

    @abstractmethod
    def select(self, outputs: tuple[Output, ...]) -> Self:
        """π: one column per output; duplicates are kept, as counts."""

    def only(self, names: Iterable[str]) -> Self:
        """π on columns as they are: these, in this order."""
        names = tuple(names)
        if names == self.schema.names:
            return self
        return self.select(tuple(Output(name, Column(name)) for name in names))

    def matching(self, columns: tuple[str, ...], keys: Self) -> Self:
        """⋉: the rows whose ``columns`` are among ``keys``, where every key stands once.

        NULL matches nothing.
        """
        names = tuple(f"key {name}" for name in columns)
        pairs = tuple(zip(columns, names, strict=True))
        return self.join(keys.renamed(names), pairs).only(self.schema.names)

    @abstractmethod
    def renamed(self, names: Iterable[str]) -> Self:
        """The same rows under other column names, in order."""

    @abstractmethod
    def copied(self, column: str) -> Self:
        """Each row as many times as its integer ``column`` says; none where that is NULL."""

    def versions(self, lo: str, hi: str) -> Self:
        """The same at every moment, with fewer entries where that is cheap to find.

        A row is there at the moments from its integer column ``lo`` to ``hi``; entries of one row that
        overlap add up. Afterwards none do, wherever this was done.
        """
        return self

    @abstractmethod
    def consolidated(self) -> Self:
        """The same relation with one entry per distinct row and no zero counts."""

    @abstractmethod
    def support(self) -> Self:
        """Every row whose count is not zero, once. Not linear."""

    def unsigned(self) -> Self:
        """At least the rows of the `support`, all with counts above zero: for looking up keys, where
        signs must not cancel and one row too many does no harm. Not linear."""
        return self.support()

    @abstractmethod
    def positive(self) -> Self:
        """The rows whose count is above zero, with that count. Not linear."""

    @abstractmethod
    def grouped(self, keys: tuple[Output, ...], aggregates: tuple[Aggregate, ...]) -> Self:
        """GROUP BY over a relation without negative counts; NULLs form one group. Not linear.

        Without keys there is exactly one group, also over no rows.
        """

    @abstractmethod
    def is_empty(self) -> bool:
        """⊥: whether every count is zero."""

    @abstractmethod
    def like(self, bag: Bag) -> Self:
        """The rows of ``bag``, which are in this process, as a relation of this body."""

    @abstractmethod
    def to_bag(self) -> Bag:
        """The relation as a plain `Bag`, fetched to this process where it is elsewhere."""
