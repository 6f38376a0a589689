"""Products of several relations of one source, joined by the source's own engine (`Snapshot.query`).

The engine is trusted with equalities of integers and with nothing else: databases differ in collations,
in trailing blanks and in what a decimal is. So it may find more than the term asks for, never less, and
every predicate is applied here again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.expressions import Column, Comparison, Expression
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import Occurrence, Term

# Number of keys in one text; more of them are asked for in several.
KEYS_PER_QUERY_MAX = 1_000

_QUOTES = {"mariadb": "`"}
# The schema of a relation that is named without one, where the link does not look there by itself.
_SCHEMAS = {"postgres": "public"}


@dataclass(frozen=True)
class SourceJoin:
    """Some occurrences of one source that integers connect, and a column to look them up by.

    ``lookup`` is a pair of full names: the column of what is given, and the occurrences' own.
    """

    term: Term
    aliases: tuple[str, ...]
    equalities: tuple[tuple[str, str], ...]
    lookup: tuple[str, str] | None

    @property
    def schema(self) -> Schema:
        fields = (f for alias in self.aliases for f in self._occurrence(alias).qualified_schema)
        return Schema(tuple(fields))

    @property
    def predicates(self) -> tuple[Expression, ...]:
        """What must hold among these occurrences alone."""
        own = set(self.aliases)
        first = {self.term.occurrences[0].alias}
        return tuple(p for p in self.term.predicates if (self.term.aliases_in(p) or first) <= own)

    def queries(self, kind: str, keys: Sequence[int] | None) -> Iterator[tuple[str, int]]:
        """Texts in the source's SQL, each with the number of its keys; ``keys`` None: all rows."""
        if keys is None or self.lookup is None:
            yield self._sql(kind, ""), 0
            return
        for start in range(0, len(keys), KEYS_PER_QUERY_MAX):
            some = keys[start : start + KEYS_PER_QUERY_MAX]
            listed = ", ".join(map(str, some))
            yield self._sql(kind, f"{self._column(kind, self.lookup[1])} IN ({listed})"), len(some)

    def _sql(self, kind: str, condition: str) -> str:
        columns = ", ".join(self._column(kind, name) for name in self.schema.names)
        tables = ", ".join(self._table(kind, self._occurrence(alias)) for alias in self.aliases)
        held = [f"{self._column(kind, a)} = {self._column(kind, b)}" for a, b in self.equalities]
        where = " AND ".join([*held, condition] if condition else held)
        return f"SELECT {columns} FROM {tables} WHERE {where}"

    def _occurrence(self, alias: str) -> Occurrence:
        return self.term.occurrence(alias)

    def _column(self, kind: str, full: str) -> str:
        (alias,) = self.term.aliases_in(Column(full))
        return f"{_quoted(kind, alias)}.{_quoted(kind, full[len(alias) + 1 :])}"

    def _table(self, kind: str, occurrence: Occurrence) -> str:
        parts = occurrence.name.relation.split(".")
        if len(parts) == 1 and kind in _SCHEMAS:
            parts.insert(0, _SCHEMAS[kind])
        name = ".".join(_quoted(kind, part) for part in parts)
        return f"{name} AS {_quoted(kind, occurrence.alias)}"


def source_join(
    assembly: Assembly, covers: frozenset[str], aliases: tuple[str, ...]
) -> SourceJoin | None:
    """How these occurrences are asked for together; None where it is better to ask one by one.

    That is where the engine would make a product, or could not look up what is given.
    """
    term = assembly.term
    own = frozenset(aliases)
    equalities = (pair for p in term.predicates if (pair := _integers(term, p)) is not None)
    inside = tuple(pair for pair in equalities if _owners(term, pair) <= own)
    if len(aliases) < 2 or not _are_connected(term, aliases, inside):
        return None
    pairs, _ = assembly.join_plan(covers, own)
    lookup = next((pair for pair in pairs if _is_integer(term, pair)), None)
    if covers and lookup is None:
        return None
    return SourceJoin(term, aliases, inside, lookup)


def _integers(term: Term, predicate: Expression) -> tuple[str, str] | None:
    match predicate:
        case Comparison("=", Column(left), Column(right)) if _is_integer(term, (left, right)):
            return left, right
        case _:
            return None


def _is_integer(term: Term, pair: tuple[str, str]) -> bool:
    return all(term.joined_schema.type_of(name) == INTEGER for name in pair)


def _owners(term: Term, pair: tuple[str, str]) -> frozenset[str]:
    return term.aliases_in(Column(pair[0])) | term.aliases_in(Column(pair[1]))


def _are_connected(
    term: Term, aliases: tuple[str, ...], pairs: tuple[tuple[str, str], ...]
) -> bool:
    reached = {aliases[0]}
    for _ in aliases:
        for pair in pairs:
            owners = _owners(term, pair)
            if owners & reached:
                reached |= owners
    return reached == set(aliases)


def _quoted(kind: str, name: str) -> str:
    quote = _QUOTES.get(kind, '"')
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"
