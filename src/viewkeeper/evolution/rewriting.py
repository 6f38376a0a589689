"""Rewriting a view: parts replaced, parts dropped, and what is refused because the view needs it.

An `Edit` says for one term what happens to its occurrences and columns. `rewritten` carries the edits
out: columns that are lost take their outputs and conditions with them, if these are dispensable. It
works on the definition alone; which edits to try is decided in `replacing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from viewkeeper.algebra.expressions import (
    Column,
    Expression,
    Output,
    columns_of,
    substituted,
)
from viewkeeper.evolution.mapping import (
    Attribute,
    AttributeMove,
    ConditionMove,
    EvolutionMapping,
    Place,
    RelationMove,
)
from viewkeeper.evolution.preferences import Preferences
from viewkeeper.evolution.quality import Extent
from viewkeeper.views.definition import Grouping, Occurrence, RelationName, Term, ViewDefinition
from viewkeeper.views.spark_sql import expression_sql


@dataclass(frozen=True)
class EvolvingView:
    """A view and what it says about its parts."""

    definition: ViewDefinition
    preferences: Preferences = field(default_factory=Preferences)


class Refused(Exception):
    """This rewriting is not possible; the text says what the view can't do without."""


@dataclass
class Edit:
    """What happens to one term. Names of columns are full (``alias.column``)."""

    # Occurrences that become others; None takes one away, with the conditions that read it.
    occurrences: dict[str, Occurrence | None] = field(default_factory=dict)
    added: list[Occurrence] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    columns: dict[str, Expression] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    # A renamed relation or column is the same thing under another name: everything may follow.
    is_rename: bool = False


def used_columns(term: Term, alias: str) -> tuple[str, ...]:
    """The occurrence's own column names that the term reads, in the schema's order."""
    occurrence = term.occurrence(alias)
    read = term.columns_read
    return tuple(c for c in occurrence.schema.names if occurrence.qualified(c) in read)


def rewritten(
    view: EvolvingView, edits: Mapping[int, Edit]
) -> tuple[ViewDefinition, EvolutionMapping]:
    """The view with the edits carried out, by index in `all_terms`; raises Refused.

    A step is nobody's to read: it may lose columns as it must, and what reads them loses them too.
    """
    definition = view.definition
    numbered = iter(range(len(definition.all_terms)))
    lost: dict[RelationName, frozenset[str]] = {}
    terms: list[Term] = []
    mapping = EvolutionMapping()
    for name, group in (*((s.name, s.terms) for s in definition.steps), (None, definition.terms)):
        editors = [
            _TermEditor(
                term,
                _reading_less(edits.get(next(numbered), Edit()), term, lost),
                view.preferences,
                is_step=name is not None,
            )
            for term in group
        ]
        dropped = frozenset().union(*(editor.dropped for editor in editors))
        terms += [editor.finished(dropped) for editor in editors]
        for editor in editors:
            mapping = mapping.merged(editor.mapping())
        if name is not None:
            lost[name] = dropped
    return _with_terms(definition, terms), mapping


def _reading_less(edit: Edit, term: Term, lost: Mapping[RelationName, frozenset[str]]) -> Edit:
    """The edit of a term that reads steps which have lost columns."""
    gone = {o.qualified(c) for o in term.occurrences for c in lost.get(o.name, ())}
    return replace(edit, lost=edit.lost | gone) if gone else edit


def _with_terms(definition: ViewDefinition, terms: Sequence[Term]) -> ViewDefinition:
    remaining = iter(terms)
    steps = tuple(
        replace(step, terms=tuple(next(remaining) for _ in step.terms)) for step in definition.steps
    )
    return replace(definition, steps=steps, terms=tuple(remaining))


class _TermEditor:
    """Carries out one edit, and finds out what goes with it."""

    def __init__(self, term: Term, edit: Edit, preferences: Preferences, *, is_step: bool) -> None:
        self.term = term
        self.is_step = is_step
        self.edit = edit
        self.preferences = preferences
        self.gone = frozenset(a for a, o in edit.occurrences.items() if o is None)
        self.predicates = [(p, self._condition_after(p)) for p in term.predicates]
        self.lost_names = self._lost_names()
        self.dropped = frozenset(o.name for o in term.outputs if self._is_dropped(o))

    # -- conditions --------------------------------------------------------------------------------

    def _condition_after(self, condition: Expression) -> Expression | None:
        """The condition over other columns; None when it is dropped. Raises Refused."""
        columns = columns_of(condition)
        if self.term.aliases_in(condition) & self.gone:
            return None
        irreplaceable = not self.edit.is_rename and self.preferences.irreplaceable
        moved = bool(columns & set(self.edit.columns))
        if columns & self.edit.lost or (
            irreplaceable and moved and irreplaceable.has_condition(condition)
        ):
            if self.preferences.dispensable.has_condition(condition):
                return None
            raise Refused(f"the condition {expression_sql(condition, str)} is not dispensable")
        return substituted(condition, self.edit.columns)

    # -- outputs -----------------------------------------------------------------------------------

    def _lost_names(self) -> frozenset[str]:
        """What outputs can't read any more: lost columns, or aggregates of them."""
        grouping = self.term.grouping
        if grouping is None:
            return frozenset(self.edit.lost)
        keys = [key for key in grouping.keys if columns_of(key.expression) & self.edit.lost]
        if keys and not self._counts_copies:
            raise Refused(f"the view groups by {expression_sql(keys[0].expression, str)}")
        lost = frozenset(
            a.name
            for a in grouping.aggregates
            if a.argument is not None and columns_of(a.argument) & self.edit.lost
        )
        if columns_of(grouping.having) & lost:
            raise Refused("a condition on the groups needs what is lost")
        return lost | {key.name for key in keys}

    @property
    def _counts_copies(self) -> bool:
        """Whether the groups are a join's own rows, counted (`Grouping.copies`): the left side of an
        outer join, of EXISTS.

        Without one of their columns, rows that differed in it alone become copies of one row. They have
        the same partners, because no condition reads the column (it would be refused, or be gone), and
        the copies are counted: the step is the same bag of rows, less the column.
        """
        grouping = self.term.grouping
        return self.is_step and grouping is not None and grouping.copies is not None

    def _is_dropped(self, output: Output) -> bool:
        read = self._columns_behind(output)
        moved = read & set(self.edit.columns) and not self.edit.is_rename
        irreplaceable = self.preferences.irreplaceable.outputs
        kept_here = moved and output.name in irreplaceable and not self.is_step
        if not (columns_of(output.expression) & self.lost_names or kept_here):
            return False
        if self.is_step or output.name in self.preferences.dispensable.outputs:
            return True
        what = "may not come from elsewhere" if kept_here else "is not dispensable"
        raise Refused(f"the column {output.name} {what}")

    def _columns_behind(self, output: Output) -> frozenset[str]:
        """The occurrences' columns that the output is computed from, through a grouping too."""
        grouping = self.term.grouping
        if grouping is None:
            return columns_of(output.expression)
        behind = {key.name: columns_of(key.expression) for key in grouping.keys}
        behind |= {
            a.name: frozenset() if a.argument is None else columns_of(a.argument)
            for a in grouping.aggregates
        }
        return frozenset().union(*(behind[name] for name in columns_of(output.expression)))

    # -- the result --------------------------------------------------------------------------------

    def finished(self, dropped: frozenset[str]) -> Term:
        """The term after the edit, without the outputs that any term drops."""
        occurrences = tuple(
            changed
            for o in self.term.occurrences
            if (changed := self.edit.occurrences.get(o.alias, o)) is not None
        )
        outputs = tuple(o for o in self.term.outputs if o.name not in dropped)
        if not occurrences or not outputs:
            raise Refused("nothing would be left of the view")
        grouping = self.term.grouping
        if grouping is None:
            outputs = tuple(
                Output(o.name, substituted(o.expression, self.edit.columns)) for o in outputs
            )
        else:
            grouping = self._grouping(grouping)
        kept = [after for _, after in self.predicates if after is not None]
        predicates = tuple(dict.fromkeys([*kept, *self.edit.conditions]))
        return replace(
            self.term,
            occurrences=(*occurrences, *self.edit.added),
            predicates=predicates,
            outputs=outputs,
            grouping=grouping,
        )

    def _grouping(self, grouping: Grouping) -> Grouping:
        columns = self.edit.columns
        return replace(
            grouping,
            keys=tuple(
                Output(k.name, substituted(k.expression, columns))
                for k in grouping.keys
                if k.name not in self.lost_names
            ),
            aggregates=tuple(
                a if a.argument is None else replace(a, argument=substituted(a.argument, columns))
                for a in grouping.aggregates
                if a.name not in self.lost_names
            ),
        )

    # -- the mapping -------------------------------------------------------------------------------

    def mapping(self) -> EvolutionMapping:
        rename = self.edit.is_rename
        conditions = [
            *(
                ConditionMove(before, after, rename)
                for before, after in self.predicates
                if before != after
            ),
            *(ConditionMove(None, condition) for condition in self.edit.conditions),
        ]
        weaker = any(
            after is None and not self.term.aliases_in(before) & self.gone
            for before, after in self.predicates
        )
        return EvolutionMapping(
            tuple(self._relation_moves()),
            tuple(self._attribute_moves()),
            tuple(conditions),
            frozenset() if rename else self._touched(),
            Extent.SUPERSET if weaker or self.gone else Extent.EQUAL,
        )

    def _touched(self) -> frozenset[str]:
        """Occurrences that are replaced or added, or lose a condition or a column to another one."""
        touched = {*self.edit.occurrences, *(o.alias for o in self.edit.added)}
        for before, after in self.predicates:
            if after is None:
                touched |= self.term.aliases_in(before)
        for column in self.edit.columns:
            touched |= self.term.aliases_in(Column(column))
        return frozenset(touched)

    def _relation_moves(self) -> Iterator[RelationMove]:
        for alias, occurrence in self.edit.occurrences.items():
            before = self.term.occurrence(alias).name
            after = None if occurrence is None else Place(alias, occurrence.name)
            if after is None or after.relation != before:
                yield RelationMove(Place(alias, before), after, self.edit.is_rename)
        for added in self.edit.added:
            yield RelationMove(None, Place(added.alias, added.name))

    def _attribute_moves(self) -> Iterator[AttributeMove]:
        for occurrence in self.term.occurrences:
            for column in used_columns(self.term, occurrence.alias):
                before = Attribute(occurrence.alias, occurrence.name, column)
                after = self._attribute_after(occurrence, column)
                if after != before:
                    yield AttributeMove(before, after, self.edit.is_rename)

    def _attribute_after(self, occurrence: Occurrence, column: str) -> Attribute | None:
        full = occurrence.qualified(column)
        moved = self.edit.columns.get(full)
        if full in self.edit.lost or occurrence.alias in self.gone:
            return None
        later = self.edit.occurrences.get(occurrence.alias) or occurrence
        if moved is None:
            return Attribute(occurrence.alias, later.name, column)
        return self._attribute_of(moved)

    def _attribute_of(self, expression: Expression) -> Attribute:
        (alias,) = {name.split(".", 1)[0] for name in columns_of(expression)}
        owner = next(o for o in self._occurrences_after() if o.alias == alias)
        if isinstance(expression, Column):
            return Attribute(alias, owner.name, expression.name.split(".", 1)[1])
        text = expression_sql(expression, lambda name: name.split(".", 1)[1])
        return Attribute(alias, owner.name, text)

    def _occurrences_after(self) -> Iterable[Occurrence]:
        changed = (self.edit.occurrences.get(o.alias, o) for o in self.term.occurrences)
        yield from (o for o in changed if o is not None)
        yield from self.edit.added
