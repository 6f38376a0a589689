"""The two invariants in the proof of the ring protocol, checked by evaluation from scratch.

Paper: Rings (2002), section 4.3, the claim. In the proof's virtual time the serial order of changes is
the order of the token's visits. At every moment:

1. The view at the warehouse, with every increment that was sent to it, is the view at the cut just
   before the oldest change that is still in the token (all of the token's past, when there is none).
2. An entry of node i is the change of x_i between two of its states, joined with every node visited
   since, each as it was in the serial order when the change was put in. The nodes visited since are
   the next ones on the ring, up to the same last one for all entries.

Written from the claim and the sources' histories; it must not use the protocols' own joins of data.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewkeeper.algebra import Bag
from viewkeeper.errors import InvariantViolated, invariant
from viewkeeper.protocols.tokens import Entry, Token
from viewkeeper.simulator.kernel.exploration import Constant
from viewkeeper.simulator.scenario import Scenario
from viewkeeper.timeline import CutVector
from viewkeeper.views.assembly import Assembly, evaluated
from viewkeeper.views.definition import RelationName, ViewDefinition


class RingInvariants(Constant):
    """Checks one scenario's runs; what it evaluates depends on cuts alone and is kept for all of them."""

    def __init__(self, scenario: Scenario) -> None:
        definition = scenario.definition
        self.histories = scenario.histories
        self.assemblies = [Assembly(term) for term in definition.terms]
        # Each term as a view of its own, under the names of the whole view.
        self.terms = [ViewDefinition(definition.name, (term,)) for term in definition.terms]
        self.names = definition.schema.names
        self._right: set[tuple[int, Entry]] = set()
        self._views: dict[tuple[int, CutVector], Bag] = {}
        self._parts: dict[tuple[int, str, int], Bag] = {}
        self._entries: dict[tuple[int, str, int, CutVector, frozenset[str]], Bag] = {}

    def check(
        self,
        tokens: Sequence[Token],
        serial_cuts: Sequence[CutVector],
        extent: Bag,
        outstanding: Sequence[Bag],
    ) -> None:
        """Raise InvariantViolated when one of the two does not hold."""
        terms = [token.term for token in tokens]
        invariant(len(terms) == len(set(terms)), "a term has two tokens", detail=f"{terms}")
        reached = list(serial_cuts)
        for token in tokens:
            self._check_token(token)
            oldest = token.oldest()
            if oldest is not None:
                reached[token.term] = oldest.before
        sent = extent
        for change in outstanding:
            sent = sent + change
        expected = self._view(0, reached[0])
        for term in range(1, len(self.terms)):
            expected = expected + self._view(term, reached[term])
        if sent != expected:
            raise InvariantViolated(
                "the warehouse, with all increments sent, is not the view before the oldest entry",
                detail=f"at {reached}: {sent} should be {expected}",
            )

    def _check_token(self, token: Token) -> None:
        last_visited = set()
        for source, entry in zip(token.ring, token.entries, strict=True):
            if entry is None:
                continue
            invariant(entry.source == source, f"the entry of {source} is that of {entry.source}")
            last_visited.add(self._segment(token, entry)[-1])
            self._check_entry(token.term, entry)
        invariant(len(last_visited) <= 1, "entries were joined up to different nodes")

    def _check_entry(self, term: int, entry: Entry) -> None:
        # What an entry should be depends on nothing else: once is enough.
        if (term, entry) in self._right:
            return
        expected = self._entry(term, entry)
        found = self.assemblies[term].arranged(entry.rows, entry.covers)
        if found != expected:
            raise InvariantViolated(
                f"the token's entry of {entry.source} is not what the serial order makes of its change",
                detail=f"{found} should be {expected}",
            )
        self._right.add((term, entry))

    def _segment(self, token: Token, entry: Entry) -> list[str]:
        """The nodes that the entry has met, its own first; they must be neighbours on the ring."""
        start = token.ring.index(entry.source)
        order = token.ring[start:] + token.ring[:start]
        met = [source for source in order if self._aliases(token.term, source) <= entry.covers]
        covered = frozenset[str]().union(*(self._aliases(token.term, source) for source in met))
        invariant(
            covered == entry.covers and list(order[: len(met)]) == met,
            f"the entry of {entry.source} has left out a node on its way",
            detail=f"it covers {sorted(entry.covers)}",
        )
        return met

    # -- evaluation from scratch -------------------------------------------------------------------

    def _aliases(self, term: int, source: str) -> frozenset[str]:
        occurrences = self.assemblies[term].term.occurrences
        return frozenset(o.alias for o in occurrences if o.source == source)

    def _view(self, term: int, cut: CutVector) -> Bag:
        view = self._views.get((term, cut))
        if view is None:
            numbers = dict(cut)

            def contents(name: RelationName) -> Bag:
                return self.histories.contents(name, numbers[name.source])

            view = evaluated(self.terms[term], contents).renamed(self.names)
            self._views[term, cut] = view
        return view

    def _entry(self, term: int, entry: Entry) -> Bag:
        key = (term, entry.source, entry.since, entry.cut, entry.covers)
        known = self._entries.get(key)
        if known is None:
            known = self._entries[key] = self._entry_from_scratch(term, entry)
        return known

    def _entry_from_scratch(self, term: int, entry: Entry) -> Bag:
        assembly = self.assemblies[term]
        covers = self._aliases(term, entry.source)
        rows = self._part(term, entry.source, entry.upto) - self._part(
            term, entry.source, entry.since
        )
        for source, number in entry.cut:
            aliases = self._aliases(term, source)
            if source == entry.source or not aliases <= entry.covers:
                continue
            rows = assembly.joined(rows, covers, self._part(term, source, number), aliases)
            covers |= aliases
        arranged: Bag = assembly.arranged(rows, covers)
        return arranged

    def _part(self, term: int, source: str, number: int) -> Bag:
        """x_i: the join of one source's occurrences, after ``number`` of its transactions."""
        part = self._parts.get((term, source, number))
        if part is None:
            assembly, aliases = self.assemblies[term], self._aliases(term, source)
            rows, covers = assembly.product(
                sorted(aliases), lambda name: self.histories.contents(name, number)
            )
            part = self._parts[term, source, number] = assembly.arranged(rows, covers)
        return part
