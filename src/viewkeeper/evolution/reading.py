"""Reading relations on behalf of a view, and joining them to what is there already.

Maintenance and adaptation are written as *processes*: generators that yield a `Read`, get its rows
sent in, and return their result. Whoever drives one decides how a read is carried out, and may give it
up at any point: a process changes nothing before its result is used.

A read says up to which update of its source the rows are wanted; the query engine sees to it, so that
processes never meet a concurrent data change.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from viewkeeper.algebra.expressions import Column, IsNull, Not, Output, conjunction
from viewkeeper.algebra.types import Schema
from viewkeeper.timeline import Cut
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import Occurrence, RelationName

Result = TypeVar("Result")
Process = Generator["Read", Any, Result]


@dataclass(frozen=True)
class Read:
    """Rows of one relation, by the view's names, as of update ``wanted`` of its source.

    With ``keys`` only rows whose ``key_columns`` are among them are needed; more do no harm.
    """

    name: RelationName
    schema: Schema
    wanted: int
    key_columns: tuple[str, ...] = ()
    keys: Any = None


def whole(occurrence: Occurrence, wanted: Cut) -> Read:
    """All rows of the occurrence's relation."""
    return Read(occurrence.name, occurrence.schema, wanted[occurrence.source])


def matching(
    assembly: Assembly, partial: Any, covers: frozenset[str], alias: str, wanted: int
) -> Read:
    """The rows of one more occurrence that can join the partial."""
    occurrence = assembly.term.occurrence(alias)
    pairs, _ = assembly.join_plan(covers, frozenset({alias}))
    own = {occurrence.qualified(name): name for name in occurrence.schema.names}
    columns = {own[theirs]: mine for mine, theirs in reversed(pairs)}
    if not columns:
        return Read(occurrence.name, occurrence.schema, wanted)
    present = conjunction(tuple(Not(IsNull(Column(mine))) for mine in columns.values()))
    outputs = tuple(Output(name, Column(mine)) for name, mine in columns.items())
    # Before signs cancel: a row that was modified needs its partners for both of its selves.
    keys = partial.support().where(present).select(outputs).support()
    return Read(occurrence.name, occurrence.schema, wanted, tuple(columns), keys)


def walked(
    assembly: Assembly,
    start: str,
    rows: Any,
    wanted: Callable[[str], int],
    local: Mapping[str, Any],
) -> Process[Any | None]:
    """``rows`` at one occurrence joined with all others; None when nothing is left on the way.

    ``local`` holds the contents of occurrences that need not be asked for; they are joined first.
    """
    partial, covers = assembly.prepared(start, rows), frozenset({start})
    _, *order = assembly.join_order(start)
    for alias in sorted(order, key=lambda alias: alias not in local):
        if partial.is_empty():
            return None
        contents = local.get(alias)
        if contents is None:
            contents = yield matching(assembly, partial, covers, alias, wanted(alias))
        partial = assembly.extended(partial, covers, alias, contents)
        covers |= {alias}
    return None if partial.is_empty() else assembly.finished(partial)


def swept(
    assembly: Assembly,
    changes: Mapping[str, Any],
    before: Cut,
    after: Cut,
    local: Mapping[str, Any] | None = None,
) -> Process[Any | None]:
    """How the term's rows differ between two cuts; ``changes`` holds what differs, by occurrence.

    One sweep for each changed occurrence; those before it in the text are wanted as they are after
    all changes, those behind it as before: Δ(A ⊗ B) = ΔA ⊗ B_before ⊕ A_after ⊗ ΔB.
    """
    total = None
    order = assembly.aliases
    for alias in order:
        if alias not in changes:
            continue

        def wanted(other: str, place: int = order.index(alias)) -> int:
            cut = after if order.index(other) < place else before
            return cut[assembly.term.occurrence(other).source]

        part = yield from walked(assembly, alias, changes[alias], wanted, local or {})
        if part is not None:
            total = part if total is None else total + part
    return total
