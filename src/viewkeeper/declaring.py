"""`@viewkeeper.view`: views declared in Python, beside those in SQL files.

A function that returns the text of a view, or anything with a method ``sql`` that does (a query built with
sqlglot). It is called when the project is read, and must return the same text every time: a view whose text
differs is another view, and is filled again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from viewkeeper.errors import UsageError


@dataclass(frozen=True)
class DeclaredView:
    """A function with a name and the headers of a view; it can still be called like the function."""

    name: str
    function: Callable[[], Any]
    headers: tuple[tuple[str, str], ...]

    def __call__(self) -> Any:
        return self.function()

    def text(self) -> str:
        """The view as a file in SQL would have it; raises UsageError when the function gives no query."""
        query = self.function()
        if not isinstance(query, str):
            as_sql = getattr(query, "sql", None)
            query = as_sql(dialect="spark") if callable(as_sql) else query
        if not isinstance(query, str):
            raise UsageError(
                "bad-view-function",
                f"the function of view {self.name} does not return a query",
                detail=f"it returned {type(query).__name__}",
                hint='return the text of a SELECT: return """SELECT …"""',
            )
        return (
            "".join(f"-- {word}: {value}\n" for word, value in self.headers) + query.strip() + "\n"
        )


@overload
def view(function: Callable[[], Any], /) -> DeclaredView: ...


@overload
def view(
    *, name: str | None = None, **headers: str
) -> Callable[[Callable[[], Any]], DeclaredView]: ...


def view(
    function: Callable[[], Any] | None = None, /, *, name: str | None = None, **headers: str
) -> DeclaredView | Callable[[Callable[[], Any]], DeclaredView]:
    """Declare a view: ``@view`` or ``@view(consistency="strong", keep="crm.customers")``.

    Its name is the function's unless ``name`` is given; every other word is a header of the view.
    """

    def declared(function: Callable[[], Any]) -> DeclaredView:
        return DeclaredView(name or function.__name__, function, tuple(headers.items()))

    return declared if function is None else declared(function)


def declared_in(namespace: Mapping[str, Any]) -> tuple[DeclaredView, ...]:
    """The views that a module has declared, in its order."""
    found = (value for value in namespace.values() if isinstance(value, DeclaredView))
    return tuple(dict.fromkeys(found))
