"""Views that read other views of the project, by name: read in their place, each of them once.

Which views there are is known by their texts alone. A view that is read becomes part of the one that
reads it, as a subquery would, so both are right at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.errors import nearest
from viewkeeper.sql.sqltext import SqlText
from viewkeeper.sql.steps import Terms
from viewkeeper.views.names import Name

# How alike a name must be to a view's to be taken for a slip rather than for a table's.
_SLIP = 0.8

ReadView = Callable[[SqlText], Terms]


@dataclass
class References:
    """The views that the texts of others may name. ``way`` leads from the first view to where we are."""

    texts: Mapping[str, str]
    way: list[str]
    _known: dict[str, Terms] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The views that were read, in the order in which that was done."""
        return tuple(self._known)

    def find(self, name: Name) -> str | None:
        """The view that is named so."""
        return next(iter(name.among(self.texts)), None)

    def require_no_slip(self, name: Name, text: SqlText, node: exp.Expr) -> None:
        """Refuse a name that is nearly that of a view."""
        close = nearest(name.text, self.texts, closeness=_SLIP)
        if close is not None:
            raise text.error(
                "unknown-view",
                f"there is no view {name.text}",
                node,
                detail="a view is named alone, a table as source.table",
                hint=f"did you mean {close}?",
            )

    def terms(self, view: str, text: SqlText, node: exp.Expr, read: ReadView) -> Terms:
        """The terms of a view that ``node`` in ``text`` names; raises UsageError on a circle."""
        if view in self.way:
            circle = [*self.way[self.way.index(view) :], view]
            raise text.error(
                "view-cycle",
                f"these views read each other in a circle: {' → '.join(circle)}",
                node,
                hint="let one of them read the sources' tables instead",
            )
        if view not in self._known:
            self.way.append(view)
            found = read(SqlText(view, self.texts[view].removeprefix("\ufeff")))
            self.way.pop()
            self._known[view] = found
        return self._known[view]
