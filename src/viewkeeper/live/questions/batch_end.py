"""The sources as they are when exactly some transactions are applied: what protocols are answered from.

A question is answered at the job's cut, which may reflect transactions that come later. What they changed
is known, and is taken out of every product by the formula of compensating queries, at the same cut:

    (X ⊖ Δ_X) ⊗ (Y ⊖ Δ_Y) = X⊗Y  ⊖  Δ_X⊗Y  ⊖  X⊗Δ_Y  ⊕  Δ_X⊗Δ_Y

So an answer always reflects a plain prefix of its source's transactions: all up to the last of those that
the protocol has been told of. What it must not see of these, the protocol itself has to take out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from viewkeeper.algebra.expressions import Column, IsNull, Not, Output, conjunction
from viewkeeper.algebra.types import Schema
from viewkeeper.errors import invariant
from viewkeeper.live.questions.message_counts import MessageCounts
from viewkeeper.live.questions.source_joins import SourceJoin, source_join
from viewkeeper.live.questions.source_queries import Questions
from viewkeeper.protocols.compensation import with_changes
from viewkeeper.protocols.messages import AnswerArrived, AskSource, KeyedPart, Part, Reflected
from viewkeeper.spark.arrow import arrow_schema
from viewkeeper.spark.staged import StagedRelation
from viewkeeper.views.assembly import Assembly
from viewkeeper.views.definition import RelationName


@dataclass(frozen=True)
class BatchEnd:
    """``reached``: the last transaction of each source that is included. ``ahead``: by relation, what
    the cuts have beyond that, with its signs turned; None where that is nothing."""

    questions: Questions
    assemblies: tuple[Assembly, ...]
    reached: Mapping[str, int]
    ahead: Callable[[RelationName], StagedRelation | None]
    # The kind of each source: each has its own SQL.
    kinds: Mapping[str, str]
    counts: MessageCounts

    def answer(self, question: AskSource) -> AnswerArrived:
        """All products of a question, in this process."""
        self.counts.questions += 1
        answers = []
        for part in question.parts:
            invariant(isinstance(part, Part), "only batched SWEEP asks by keys alone")
            if isinstance(part, Part):
                answers.append(self.product(part))
        self.counts.answers += 1
        self.counts.rows += sum(answer.lines for answer in answers)
        reflects = Reflected(self.reached[question.source])
        return AnswerArrived(question.question, tuple(answers), reflects)

    def product(self, part: Part) -> StagedRelation:
        """``given`` ⊗ the occurrences it asks for, its columns in that order."""
        assembly = self.assemblies[part.term]
        names = _column_names(assembly, part)
        total = self._at_cut(part)
        for difference in with_changes(assembly, part, self.ahead):
            rows = self._at_cut(difference) if difference.asks else difference.given
            total = total.only(names) + rows.only(names)
        return self.questions.staging.taken(total.only(names))

    def whole(self, name: RelationName, schema: Schema) -> StagedRelation:
        """A whole relation, with the columns of ``schema``."""
        self.counts.reads += 1
        rows: Any = self.questions.whole(name, schema)
        ahead = self.ahead(name)
        return self.questions.staging.taken(rows if ahead is None else rows + ahead)

    def _at_cut(self, part: Part) -> Any:
        """The product as the cut has it."""
        assembly = self.assemblies[part.term]
        together = source_join(assembly, part.covers, part.asks)
        if together is not None:
            return self._joined_there(part, together)
        partial, covers = part.given, part.covers
        remaining = list(part.asks)
        while remaining:
            graph = assembly.term.join_graph
            alias = next((a for a in remaining if graph[a] & covers), remaining[0])
            remaining.remove(alias)
            rows = self._rows(part.term, partial, covers, alias)
            if partial is None:
                partial = rows
            else:
                joined = assembly.joined(partial, covers, rows, frozenset({alias}))
                partial = self.questions.staging.taken(joined)
            covers |= {alias}
        return partial

    def _rows(self, term: int, partial: Any, covers: frozenset[str], alias: str) -> StagedRelation:
        """Those rows of an occurrence that a partial can meet."""
        assembly = self.assemblies[term]
        pairs, _ = assembly.join_plan(covers, frozenset({alias}))
        by_column = {theirs: mine for mine, theirs in pairs}
        part = KeyedPart(term, alias)
        if by_column:
            keys = self._keys(partial, by_column)
            part = KeyedPart(term, alias, tuple(by_column), keys)
        self.counts.reads += 1
        source = assembly.term.occurrence(alias).source
        return self.questions.rows(source, part, assembly.term)

    def _keys(self, partial: Any, by_column: Mapping[str, str]) -> StagedRelation:
        outputs = tuple(Output(theirs, Column(mine)) for theirs, mine in by_column.items())
        present = conjunction(tuple(Not(IsNull(Column(name))) for name in by_column))
        # An old and a new row of opposite signs may have the same key, and must lead to it.
        keys = partial.support().select(outputs).where(present).support()
        return self.questions.staging.taken(keys)

    def _joined_there(self, part: Part, together: SourceJoin) -> Any:
        """The occurrences joined by their source, and then with what is given, here."""
        assembly, staging = self.assemblies[part.term], self.questions.staging
        source = assembly.term.occurrence(together.aliases[0]).source
        keys: list[int] | None = None
        if part.given is not None and together.lookup is not None:
            mine, theirs = together.lookup
            found = self._keys(part.given, {theirs: mine}).to_bag()
            keys = sorted(cast(int, row[0]) for row, _ in found)
        tables = [arrow_schema(together.schema).empty_table()]
        for sql, number in together.queries(self.kinds[source], keys):
            self.counts.reads += 1
            tables.append(self.questions.query(source, sql, together.schema, number))
        found_there = staging.relation(pa.concat_tables(tables), together.schema)
        rows = found_there.where(conjunction(together.predicates))
        if part.given is None:
            return rows
        return assembly.joined(part.given, part.covers, rows, frozenset(together.aliases))


def _column_names(assembly: Assembly, part: Part) -> tuple[str, ...]:
    given = () if part.given is None else part.given.schema.names
    asked = (name for a in part.asks for name in assembly.term.occurrence(a).qualified_schema.names)
    return (*given, *asked)
