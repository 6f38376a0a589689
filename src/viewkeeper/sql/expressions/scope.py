"""Which columns a name can mean at one place of a query.

An *item* is what FROM lists: a relation or a flattened subquery, with its columns as expressions over
the occurrences of the term. Pure data; errors with positions are made by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from viewkeeper.algebra.expressions import Expression
from viewkeeper.views.names import Name


@dataclass(frozen=True)
class Visible:
    """A column as seen from outside: its name, and what it stands for."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Item:
    """``path``: the qualifiers it answers to, outermost first (source, schema, table; or an alias)."""

    path: tuple[str, ...]
    columns: tuple[Visible, ...]

    def answers_to(self, qualifier: tuple[Name, ...]) -> bool:
        """Whether the qualifier names this item: any tail of its path does."""
        if not 0 < len(qualifier) <= len(self.path):
            return False
        tail = self.path[-len(qualifier) :]
        return all(name.matches(part) for name, part in zip(qualifier, tail, strict=True))


@dataclass(frozen=True)
class Scope:
    """``items`` answer to qualified names; ``visible`` are the columns of ``*``, in order.

    ``outputs`` are names that can't be used here, though somebody may think so. ``values`` are what
    subqueries are worth, under names that no text can write. ``enclosing`` is the scope of the query
    around, where a name is looked for that means nothing here; ``beyond`` that of the one around it,
    which is out of reach.
    """

    items: tuple[Item, ...] = ()
    visible: tuple[Visible, ...] = ()
    outputs: tuple[str, ...] = ()
    values: tuple[Visible, ...] = ()
    enclosing: Scope | None = None
    beyond: Scope | None = None

    @classmethod
    def of(cls, item: Item) -> Scope:
        return cls((item,), item.columns)

    def beside(self, other: Scope) -> Scope:
        return replace(
            self,
            items=self.items + other.items,
            visible=self.visible + other.visible,
            values=self.values + other.values,
        )

    def mapped(self, change: Callable[[Expression], Expression]) -> Scope:
        """The same names for other expressions."""

        def columns(found: tuple[Visible, ...]) -> tuple[Visible, ...]:
            return tuple(Visible(v.name, change(v.expression)) for v in found)

        items = tuple(Item(item.path, columns(item.columns)) for item in self.items)
        return replace(
            self, items=items, visible=columns(self.visible), values=columns(self.values)
        )

    def merged(self, other: Scope, names: tuple[str, ...]) -> Scope:
        """JOIN … USING: the named columns once and first, then the rest of both sides."""

        def named(side: Scope, wanted: bool) -> tuple[Visible, ...]:
            return tuple(v for v in side.visible if (v.name.casefold() in folded) is wanted)

        folded = [name.casefold() for name in names]
        shared = sorted(named(self, True), key=lambda v: folded.index(v.name.casefold()))
        rest = named(self, False) + named(other, False)
        return replace(self.beside(other), visible=tuple(shared) + rest)

    def qualified(self, qualifier: tuple[Name, ...]) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.answers_to(qualifier))

    def candidates(self, qualifier: tuple[Name, ...]) -> tuple[Visible, ...]:
        """The columns that a name under this qualifier is looked for among."""
        if not qualifier:
            return self.visible
        return tuple(column for item in self.qualified(qualifier) for column in item.columns)

    def found(self, qualifier: tuple[Name, ...], name: Name) -> tuple[Visible, ...]:
        """All columns the name can mean; a spelling written just so beats the others."""
        matching = [v for v in self.candidates(qualifier) if name.matches(v.name)]
        exact = [v for v in matching if v.name == name.text]
        if not matching and self.enclosing is not None and not self.qualified(qualifier):
            return self.enclosing.found(qualifier, name)
        return tuple(exact or matching)

    def all_names(self) -> tuple[str, ...]:
        """Every column under every way to write it, for suggestions."""
        qualified = [f"{i.path[-1]}.{c.name}" for i in self.items if i.path for c in i.columns]
        return tuple(dict.fromkeys([*(v.name for v in self.visible), *qualified]))
