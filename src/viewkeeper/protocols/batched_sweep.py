"""Batched SWEEP: many transactions in one computation, and still every state of each.

Ours, on the ground of SWEEP (1997). Level: complete. Assumes: nothing beyond reliable delivery.

A Spark job costs the same for one row as for many thousands, so transactions are maintained together.
No state is lost: every changed row carries the number of its transaction (column ``_txn``), and so does
every row of the view change. For a changed row d of one occurrence, another occurrence X must be seen
as d's transaction saw it. With S an answer for X, taken at any moment,

    X seen by d = S ⊖ {changes c of X : S reflects c, c later than d}
                    ⊕ {changes c of X : S does not reflect c, c earlier than d}

The right side is one relation, the *timeline* of X: each of its rows is valid for the transactions in an
interval of numbers. Rows of S are valid for all; a reflected change c, negated, for those before c; a
change that S misses, for those after c. A view change is then ordinary joins with one more condition,
``_lo ≤ _txn ≤ _hi``, for all transactions of the batch at once.

A transaction that changes several occurrences sees its own change in the earlier ones and not in the
later ones, as in `sweeping`: the interval of a change includes its own number or not.

Questions go out in rounds, one to a source and round: keys out, rows back. The keys that the next hop
needs are those in the rows of the last one and in its corrections, so nothing is joined before all rows
are here, and the whole batch is one expression at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.expressions import (
    And,
    Arithmetic,
    Column,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Not,
    Output,
    conjunction,
    conjuncts,
)
from viewkeeper.algebra.types import INTEGER
from viewkeeper.errors import invariant
from viewkeeper.protocols.messages import (
    TXN,
    Action,
    AnswerArrived,
    Assumptions,
    InstallBatch,
    KeyedPart,
    Reflected,
)
from viewkeeper.protocols.view_manager import Place, ViewManager
from viewkeeper.timeline import Transaction
from viewkeeper.views.definition import RelationName, ViewDefinition
from viewkeeper.views.level import Level

LO, HI = "_lo", "_hi"
FIRST, LAST = 0, 2**62

# A transaction with its number in the order of arrival; of a block, the number of its first.
Numbered = tuple[int, Transaction]


@dataclass(frozen=True)
class _Answer:
    """An occurrence's rows as answered, and its corrections, which are known when the answer is.

    ``later``: reflected changes that some transaction of the batch must not see. ``missing``: changes
    that are not reflected and that some transaction must see.
    """

    rows: Any
    later: Any | None
    missing: Any | None


@dataclass
class Route:
    """The way of one changed occurrence through the others, and the rows found on it."""

    start: Place
    order: tuple[str, ...]
    visited: int = 0
    answers: dict[str, _Answer] = field(default_factory=dict)
    # For each occurrence: rows (with more than enough of them) to take the next keys from.
    rows: dict[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return self.visited == len(self.order)

    @property
    def next_alias(self) -> str:
        return self.order[self.visited]


class BatchedSweep(ViewManager):
    """All that waits becomes one batch; one batch at a time."""

    name = "batched-sweep"
    asks = "rows by key, once per batch: n − 1 questions for each changed relation"
    level = Level.COMPLETE
    in_order = True
    assumes = Assumptions()
    paper = "ours, after SWEEP, section 5"
    # Eager: begin whenever something waits and nothing runs. Else a batch begins when it is closed.
    eager = True

    def __init__(
        self,
        definition: ViewDefinition,
        extent: Any,
        sources: tuple[str, ...] = (),
        first_number: int = 1,
    ) -> None:
        """``first_number`` is the number of the first transaction that will arrive."""
        super().__init__(definition, extent, sources)
        self.queue: deque[Numbered] = deque()
        self.batch: tuple[Numbered, ...] = ()
        self._changed: set[RelationName] = set()
        self._routes: list[Route] = []
        self._number = first_number - 1
        self._known_corrections: dict[tuple[Place, Reflected], tuple[Any | None, Any | None]] = {}
        self._numbers: dict[str, dict[int, int]] = {source: {} for source in self.sources}

    # -- the machine -------------------------------------------------------------------------------

    def transaction_arrived(self, transaction: Transaction) -> Iterable[Action]:
        return self._queued((transaction,))

    def transactions_arrived(self, transactions: Sequence[Transaction]) -> Iterable[Action]:
        self._note(transactions)
        return self._queued(transactions)

    def _queued(self, transactions: Sequence[Transaction]) -> Iterable[Action]:
        number = self._number + 1
        for transaction in transactions:
            self._numbers[transaction.source][transaction.number] = number
            self.queue.append((number, transaction))
            number += transaction.size
        self._number = number - 1
        return self._next() if self.eager else ()

    def batch_closed(self, size: int) -> Iterable[Action]:
        invariant(not self.batch, "a batch can't be closed now")
        return self._begin(self._taken(size))

    def batch_passed(self, size: int) -> None:
        invariant(not self.batch, "a batch can't be passed over now")
        self.advanced(tuple(transaction for _, transaction in self._taken(size)))
        self._forget_numbers()

    def _taken(self, size: int) -> tuple[Numbered, ...]:
        """The first ``size`` transactions that wait; a block is divided where they end."""
        taken: list[Numbered] = []
        while size:
            invariant(bool(self.queue), "more transactions are wanted than have arrived")
            number, transaction = self.queue.popleft()
            if transaction.size > size:
                self.queue.appendleft((number + size, transaction.between(size, transaction.size)))
                transaction = transaction.between(0, size)
            taken.append((number, transaction))
            size -= transaction.size
        return tuple(taken)

    def answer_arrived(self, asked: list[Route], answer: AnswerArrived) -> Iterable[Action]:
        for route, rows in zip(asked, answer.answers, strict=True):
            self._take_in(route, rows, answer.reflects)
        if not self._open:
            yield from self._round()

    def _next(self) -> Iterator[Action]:
        if self.queue and not self.batch:
            batch = tuple(self.queue)
            self.queue.clear()
            yield from self._begin(batch)

    def _begin(self, batch: tuple[Numbered, ...]) -> Iterator[Action]:
        self.batch = batch
        self._changed = {name for _, t in self.batch for name, _ in t.changes}
        self._start()
        yield from self._round()

    def _start(self) -> None:
        self._routes = [route for index in range(len(self.terms)) for route in self._ways(index)]

    def _ways(self, index: int) -> list[Route]:
        """One route from every occurrence of the term that the batch changes."""
        return [
            self._route((index, occurrence.alias))
            for occurrence in self.terms[index].occurrences
            if occurrence.name in self._changed
        ]

    def _route(self, start: Place) -> Route:
        term, alias = start
        _, *order = self.assemblies[term].join_order(alias)
        route = Route(start, tuple(order))
        # A row that one transaction inserts and the next deletes must lead to its keys all the same:
        # signs are dropped before numbers are.
        changes = self._changes(start, self.batch).unsigned()
        route.rows[alias] = self._prepared(start, changes)
        return route

    def _round(self) -> Iterator[Action]:
        """The questions that are due; or, with none, the result."""
        questions = tuple(self._due())
        yield from questions
        if not questions:
            yield self._install()
            if self.eager:
                yield from self._next()

    @property
    def is_last_round(self) -> bool:
        """Whether the routes that are under way lead no further than the questions that are open."""
        return all(len(route.order) - route.visited <= 1 for route in self._routes)

    def _due(self) -> Iterator[Action]:
        """One question to every source that some route visits next."""
        by_source: dict[str, list[Route]] = {}
        for route in self._routes:
            if not route.is_complete:
                place = (route.start[0], route.next_alias)
                by_source.setdefault(self._holder(place), []).append(route)
        for source, routes in by_source.items():
            yield self._question(source, routes)

    def _holder(self, place: Place) -> str:
        """The source that is asked for the rows of an occurrence."""
        return self.occurrence(place).source

    def _question(self, source: str, routes: list[Route]) -> Action:
        return self.ask(source, tuple(self._part(route) for route in routes), routes)

    # -- keys out, rows back -----------------------------------------------------------------------

    def _part(self, route: Route) -> KeyedPart:
        """The next question of a route: by the keys of one occurrence that it has rows of."""
        term, alias = route.start[0], route.next_alias
        assembly = self.assemblies[term]
        pairs, _ = assembly.join_plan(frozenset(route.rows), frozenset({alias}))
        by_owner: dict[str, list[tuple[str, str]]] = {}
        for mine, theirs in pairs:
            (owner,) = assembly.term.aliases_in(Column(mine))
            by_owner.setdefault(owner, []).append((mine, theirs))
        if not by_owner:
            return KeyedPart(term, alias)
        owner, chosen = max(by_owner.items(), key=lambda item: len(item[1]))
        outputs = tuple(Output(theirs, Column(mine)) for mine, theirs in chosen)
        present: Expression = conjunction(tuple(Not(IsNull(Column(t))) for _, t in chosen))
        keys = route.rows[owner].select(outputs).where(present).support()
        return KeyedPart(term, alias, tuple(theirs for _, theirs in chosen), keys)

    def _take_in(self, route: Route, rows: Any, reflects: Reflected) -> None:
        alias = route.next_alias
        answer = self._corrected((route.start[0], alias), rows, reflects)
        # Rows that only a correction knows (deleted before we asked) lead to keys as well.
        # An answer that reflects a deletion and not the insertion before it has less than no such row:
        # that must lead to keys, too, and not cancel those that a correction leads to.
        found = rows if reflects.is_prefix else rows.unsigned()
        for correction in (answer.later, answer.missing):
            if correction is not None:
                found = found + correction.unsigned().only(rows.schema.names)
        route.answers[alias] = answer
        route.rows[alias] = found
        route.visited += 1

    # -- the result --------------------------------------------------------------------------------

    def _install(self) -> InstallBatch:
        return self._installed(self._result())

    def _result(self) -> Any:
        """The view's numbered change."""
        names = self.nothing.schema.names
        columns = tuple(Output(name, Column(name)) for name in names)
        change = self.nothing.select((*columns, Output(TXN, Literal(FIRST, INTEGER))))
        for route in self._routes:
            change = change + self._joined(route).renamed((*names, TXN))
        return change

    def _installed(self, change: Any, stores: Mapping[str, Any] | None = None) -> InstallBatch:
        """The batch is over: its changes, and the cuts it leads to."""
        numbers = tuple(number for number, _ in self.batch)
        transactions = tuple(transaction for _, transaction in self.batch)
        cuts = self.advanced(transactions)
        self._forget_numbers()
        self.batch, self._routes = (), []
        self._known_corrections = {}
        return InstallBatch(change, numbers, cuts, transactions, stores or {})

    def _forget_numbers(self) -> None:
        """Of transactions that no answer needs any more."""
        for source in self.sources:
            known = self._numbers[source]
            self._numbers[source] = {n: known[n] for n in self.recent.numbers_of(source)}

    def _joined(self, route: Route) -> Any:
        """The route's part of the view change: its changed rows ⊗ the timelines of all others."""
        term, alias = route.start
        assembly = self.assemblies[term]
        partial = self._prepared(route.start, self._changes(route.start, self.batch), TXN)
        covers = frozenset({alias})
        for other in route.order:
            on, where = assembly.join_plan(covers, frozenset({other}))
            valid = And(
                (
                    Comparison("<=", Column(LO), Column(TXN)),
                    Comparison("<=", Column(TXN), Column(HI)),
                )
            )
            # The interval of the last join; that of the next one has the same names.
            partial = partial.only(n for n in partial.schema.names if n not in (LO, HI))
            timeline = self._timeline(route, other)
            partial = partial.join(timeline, on, conjunction((*conjuncts(where), valid)))
            covers |= {other}
        return partial.select((*self._outputs(term), Output(TXN, Column(TXN))))

    def _outputs(self, term: int) -> tuple[Output, ...]:
        """What is computed of a term's joined rows."""
        return self.terms[term].outputs

    def _timeline(self, route: Route, alias: str) -> Any:
        """The occurrence's rows, each with the interval of transactions that see it."""
        answer = route.answers[alias]
        aliases = self.assemblies[route.start[0]].aliases
        sees_own = self._sees_own(aliases.index(alias), aliases.index(route.start[1]))
        timeline = _valid(answer.rows, Literal(FIRST, INTEGER), Literal(LAST, INTEGER))
        if answer.later is not None:
            until = _shifted(TXN, -1 if sees_own else 0)
            timeline = timeline + -_valid(answer.later, Literal(FIRST, INTEGER), until)
        if answer.missing is not None:
            since = _shifted(TXN, 0 if sees_own else 1)
            timeline = timeline + _valid(answer.missing, since, Literal(LAST, INTEGER))
        if answer.later is not None or answer.missing is not None:
            # A row that many transactions changed: a version each, not all of them cancelling.
            timeline = timeline.versions(LO, HI)
        return timeline

    def _sees_own(self, place: int, start: int) -> bool:
        """Whether a transaction's change at ``start`` sees its own change at the other place."""
        return place < start

    # -- changes by number -------------------------------------------------------------------------

    def _corrected(self, place: Place, rows: Any, reflects: Reflected) -> _Answer:
        # Live, all answers of a source are at one cut, and several routes come by the same place.
        known = self._known_corrections.get((place, reflects))
        if known is None:
            known = self._known_corrections[place, reflects] = self._corrections(place, reflects)
        return _Answer(rows, *known)

    def _corrections(self, place: Place, reflects: Reflected) -> tuple[Any | None, Any | None]:
        first, last = self.batch[0][0], _last_of(self.batch[-1])
        source = self.occurrence(place).source
        later: list[Numbered] = []
        missing: list[Numbered] = []
        numbers, includes = self._numbers[source], reflects.includes
        for transaction in self.recent.of_source(source):
            number = numbers[transaction.number]
            if transaction.size > 1:
                for piece, is_reflected in _pieces((number, transaction), reflects):
                    if is_reflected:
                        later += _from(first, piece)
                    else:
                        missing += _up_to(last, piece)
            elif includes(transaction.number):
                if number >= first:
                    later.append((number, transaction))
            elif number <= last:
                missing.append((number, transaction))
        return self._numbered(place, later), self._numbered(place, missing)

    def _numbered(self, place: Place, transactions: list[Numbered]) -> Any | None:
        name = self.occurrence(place).name
        if not any(name in transaction.relations for _, transaction in transactions):
            return None
        return self._prepared(place, self.collected(name, transactions), TXN)

    def _changes(self, place: Place, transactions: Iterable[Numbered]) -> Any:
        return self.collected(self.occurrence(place).name, transactions)

    def collected(self, name: RelationName, transactions: Iterable[Numbered]) -> Any:
        """All changes of one relation in some transactions, with their numbers in column `TXN`.

        The live pipeline overrides this: it has the changes of a batch as one table.
        """
        total: Any = None
        for number, transaction in transactions:
            change = transaction.change(name)
            if change is not None:
                columns = tuple(Output(c, Column(c)) for c in change.schema.names)
                numbered = change.select((*columns, Output(TXN, Literal(number, INTEGER))))
                total = numbered if total is None else total + numbered
        return total

    def _prepared(self, place: Place, numbered: Any, *kept: str) -> Any:
        """Numbered changes as a partial of their occurrence, with its local predicates applied."""
        term, alias = place
        occurrence = self.occurrence(place)
        columns = [
            Output(occurrence.qualified(column), Column(column))
            for column in occurrence.schema.names
        ]
        columns += [Output(name, Column(name)) for name in kept]
        local = conjunction(self.terms[term].local_predicates(alias))
        return numbered.select(tuple(columns)).where(local)


def _last_of(numbered: Numbered) -> int:
    number, transaction = numbered
    return number + transaction.size - 1


def _pieces(numbered: Numbered, reflects: Reflected) -> Iterator[tuple[Numbered, bool]]:
    """A block in pieces that an answer reflects, or does not."""
    number, block = numbered
    for first, last, is_reflected in reflects.divided(block.number, block.last_number):
        start = first - block.number
        piece = block.between(start, last - block.number + 1)
        yield (number + start, piece), is_reflected


def _from(first: int, numbered: Numbered) -> Iterator[Numbered]:
    """What of it has at least this number."""
    number, transaction = numbered
    start = max(first - number, 0)
    if start < transaction.size:
        yield number + start, transaction.between(start, transaction.size)


def _up_to(last: int, numbered: Numbered) -> Iterator[Numbered]:
    """What of it has at most this number."""
    number, transaction = numbered
    end = min(last + 1 - number, transaction.size)
    if end > 0:
        yield number, transaction.between(0, end)


def _valid(rows: Any, lo: Expression, hi: Expression) -> Any:
    """The rows with an interval of transactions, the number they may have had dropped."""
    names = [name for name in rows.schema.names if name != TXN]
    columns = tuple(Output(name, Column(name)) for name in names)
    return rows.select((*columns, Output(LO, lo), Output(HI, hi)))


def _shifted(column: str, by: int) -> Expression:
    return Arithmetic("+", Column(column), Literal(by, INTEGER)) if by else Column(column)
