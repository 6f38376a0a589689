"""The token of the ring protocols, and what a node does with it and with its own data.

Paper: Rings (2002), sections 4 and 5. A token goes round the sources of a term and carries one entry
for each of them: the change that the source put in when the token was there last, joined since then
with every source on the way. After a full turn the entry is a change of the view.

The order of the token's visits is the *serial order* in which changes take effect. A node that joins
its data into another's entry uses its data as of its own last visit: changes that it puts in now come
later in the serial order. So nothing is ever counted twice, and no correction is needed.

| here | the paper |
|---|---|
| `LocalData.seen` | x_i ⊖ Δ_i |
| `Entry` | token[i] when it is not ⊥ |
| ``None`` in `Token.entries` | token[i] = ⊥ |
| `Token.number` | sn |
| `Increment` | incr(Δ_F, sn) |
| `Token.cut` | the virtual time of the proof: how far each node is in at its last visit |

Where we differ: a node is a whole source, x_i the join of its relations in the term (one relation in
the paper); entries and increments say at which cut the view arrives, so that the claim can be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.algebra.expressions import FALSE
from viewkeeper.errors import UsageError
from viewkeeper.timeline import CutVector, Transaction, summed_changes
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName, Term, ViewDefinition


@dataclass(frozen=True)
class Entry:
    """A node's change on its way round: a partial over ``covers``.

    It brings in the source's transactions ``since`` + 1 up to ``cut[source]``; with it installed, and
    all that comes earlier in the serial order, the term stands at ``cut``.
    """

    source: str
    since: int
    cut: CutVector
    rows: Any
    covers: frozenset[str]

    @property
    def before(self) -> CutVector:
        """Where the term stands in the serial order just before this change."""
        return self.cut.advanced(self.source, self.since)

    @property
    def upto(self) -> int:
        return self.cut[self.source]


@dataclass(frozen=True)
class Token:
    """The token of one term: an entry, or ⊥, for each node in the order of the ring."""

    term: int
    ring: tuple[str, ...]
    entries: tuple[Entry | None, ...]
    cut: CutVector
    number: int = 0
    # Whether the node may put its own changes in; always, unless the warehouse drives the refresh.
    gathers: bool = True

    @classmethod
    def empty(cls, term: int, ring: tuple[str, ...], cut: CutVector) -> Token:
        """[⊥, …, ⊥], at a cut that is the view's own."""
        return cls(term, ring, (None,) * len(ring), cut)

    @property
    def is_empty(self) -> bool:
        return all(entry is None for entry in self.entries)

    def entry(self, source: str) -> Entry | None:
        return self.entries[self.ring.index(source)]

    def without(self, source: str) -> Token:
        """The token with that node's entry taken out."""
        entries = zip(self.ring, self.entries, strict=True)
        return replace(self, entries=tuple(None if s == source else e for s, e in entries))

    def oldest(self) -> Entry | None:
        """The entry that comes first in the serial order: every later one has a higher cut."""
        present = [entry for entry in self.entries if entry is not None]
        return min(present, key=lambda entry: entry.cut.total, default=None)


@dataclass(frozen=True)
class Increment:
    """A finished entry on its way to the warehouse: the ``number``-th change of its term."""

    term: int
    number: int
    source: str
    upto: int
    change: Any
    cut: CutVector


# -- a node's own data --------------------------------------------------------------------------


class LocalData:
    """The relations of one source, as the token last saw them (x_i ⊖ Δ_i in the paper)."""

    def __init__(
        self, definition: ViewDefinition, source: str, contents: Mapping[RelationName, Any]
    ) -> None:
        self.source = source
        self.assemblies = {
            index: Assembly(term)
            for index, term in enumerate(definition.terms)
            if source in sources_of(term)
        }
        self.seen = {name: rows for name, rows in contents.items() if name.source == source}

    def aliases(self, term: int) -> tuple[str, ...]:
        """The source's occurrences in the term."""
        occurrences = self.assemblies[term].term.occurrences
        return tuple(o.alias for o in occurrences if o.source == self.source)

    def joined(self, entry: Entry, term: int) -> Entry:
        """Another node's entry with this node's data joined in, as the token last saw them."""
        rows, covers = self._extended(term, entry.rows, entry.covers, self.aliases(term), self.seen)
        return replace(entry, rows=rows, covers=covers)

    def change(self, term: int, transactions: Iterable[Transaction]) -> tuple[Any, frozenset[str]]:
        """Δ_i: the change that the transactions make to the join of the source's occurrences.

        Several occurrences may change at once; the earlier ones are taken as after the change, the
        later ones as before it: Δ(A ⊗ B) = ΔA ⊗ B_before ⊕ A_after ⊗ ΔB.
        """
        changes = summed_changes(transactions)
        after = self._advanced(changes)
        assembly, aliases = self.assemblies[term], self.aliases(term)
        covers = frozenset(aliases)
        total: Any = None
        for alias in aliases:
            name = assembly.term.occurrence(alias).name
            if name not in changes:
                continue
            earlier = aliases[: aliases.index(alias)]
            later = aliases[aliases.index(alias) + 1 :]
            start = assembly.prepared(alias, changes[name])
            rows, reached = self._extended(term, start, frozenset({alias}), earlier, after)
            rows, _ = self._extended(term, rows, reached, later, self.seen)
            rows = assembly.arranged(rows, covers)
            total = rows if total is None else total + rows
        return self._nothing(term) if total is None else total, covers

    def _nothing(self, term: int) -> Any:
        """The empty change: the transactions do not touch this term."""
        assembly = self.assemblies[term]
        first, *rest = self.aliases(term)
        contents = self.seen[assembly.term.occurrence(first).name]
        start = assembly.prepared(first, contents.where(FALSE))
        rows, _ = self._extended(term, start, frozenset({first}), rest, self.seen)
        return rows

    def advance(self, transactions: Iterable[Transaction]) -> None:
        """From now on the token has seen these."""
        self.seen = self._advanced(summed_changes(transactions))

    def _advanced(self, changes: Mapping[RelationName, Any]) -> dict[RelationName, Any]:
        return {
            name: rows + changes[name] if name in changes else rows
            for name, rows in self.seen.items()
        }

    def _extended(
        self,
        term: int,
        rows: Any,
        covers: frozenset[str],
        aliases: Iterable[str],
        contents: Mapping[RelationName, Any],
    ) -> tuple[Any, frozenset[str]]:
        return self.assemblies[term].product(aliases, contents.__getitem__, rows, covers)


def visited(
    token: Token, data: LocalData, transactions: tuple[Transaction, ...]
) -> tuple[Token, Entry | None]:
    """The token as the node leaves it, and the node's entry that has gone full turn (lines 2-8).

    ``transactions`` are those that the node puts in; `LocalData.advance` is still to be called.
    """
    source = data.source
    cut = token.cut
    mine: Entry | None = None
    if transactions:
        cut = cut.advanced(source, transactions[-1].number)
        rows, covers = data.change(token.term, transactions)
        mine = Entry(source, transactions[0].number - 1, cut, rows, covers)
    entries = tuple(
        mine if name == source else None if entry is None else data.joined(entry, token.term)
        for name, entry in zip(token.ring, token.entries, strict=True)
    )
    return replace(token, entries=entries, cut=cut), token.entry(source)


def without_nothing(token: Token) -> Token:
    """Entries that have become empty are ⊥ from now on: ⊥ ⊗ x = ⊥."""
    entries = tuple(None if e is None or e.rows.is_empty() else e for e in token.entries)
    return replace(token, entries=entries)


def view_change(definition: ViewDefinition, assembly: Assembly, entry: Entry) -> Any:
    """A finished entry as a change of the view."""
    return assembly.finished(entry.rows).renamed(definition.schema.names)


def sources_of(term: Term) -> tuple[str, ...]:
    """The sources that a term reads, once, in order of appearance: the term's ring."""
    return tuple(dict.fromkeys(o.source for o in term.occurrences))


def require_linear(protocol: str, definition: ViewDefinition, *, one_term: bool) -> None:
    """Refuse a view that the protocol can't maintain."""
    if not definition.is_linear:
        raise UsageError(
            "view-not-linear",
            f"{protocol} can't maintain {definition.name}: it groups or removes duplicates",
            hint="maintain the rows before grouping, or choose another protocol",
        )
    if one_term and len(definition.terms) != 1:
        raise UsageError(
            "protocol-not-applicable",
            f"{protocol} can't maintain {definition.name}: it has {len(definition.terms)} terms",
            detail="one token goes round the sources of one term",
            hint="use ring-terms, which has a token for each term",
        )
