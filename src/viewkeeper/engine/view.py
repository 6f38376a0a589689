"""A view as the runtime knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.evolution.lineage import Lineage, Lineages
from viewkeeper.evolution.preferences import Preferences
from viewkeeper.protocols.choice import Choice, choice_for
from viewkeeper.views.catalog import CatalogRelation
from viewkeeper.views.definition import LOCAL, RelationName, ViewDefinition
from viewkeeper.views.relevance import RowTest, row_tests
from viewkeeper.views.storing import definition_as_text
from viewkeeper.warehouse.columns import schema_from_json, schema_to_json
from viewkeeper.warehouse.entries import Definition

# Behind a view's own text stand, as comments, those of the views that it reads.
READS = "\n-- reads the view "


@dataclass(frozen=True)
class View:
    """A view to be kept: its definition over whole relations, and its text.

    ``origin`` is what its user wrote, where the view has evolved since; ``preferences`` say how it may.
    """

    definition: ViewDefinition
    text: str
    origin: str = ""
    preferences: Preferences = Preferences()  # noqa: RUF009  (immutable)
    # The schema change that led to this text, for people.
    evolved: Any = None
    # What became of the relations that its files name, where that is another name or nothing.
    lineage: Lineages = ()

    @property
    def written(self) -> str:
        return self.origin or self.text

    def stored(self) -> Definition:
        """As the warehouse keeps it."""
        relations = {
            str(o.name): {"columns": schema_to_json(o.schema), "key": list(o.key)}
            for term in self.definition.all_terms
            for o in term.occurrences
            if o.source != LOCAL
        }
        return Definition(
            self.definition.schema,
            self.text,
            publish=dict(self.definition.settings).get("publish") == "table",
            origin=self.origin,
            relations=relations,
            evolved=self.evolved,
            tree=definition_as_text(self.definition) if self._is_more_than_its_text else "",
            lineage=[_lineage_to_json(each) for each in self.lineage],
        )

    @property
    def _is_more_than_its_text(self) -> bool:
        """Whether its text alone does not tell what it is: it evolved, or others that it reads may."""
        return bool(self.origin) or READS in self.text

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def row_tests(self) -> Mapping[RelationName, RowTest]:
        """For relations of which conditions rule rows out: whether a row may change the view."""
        return row_tests(self.definition)

    @property
    def shortfall(self) -> str | None:
        """Why it is kept at a lower level than it declares, in a sentence; None where it is not."""
        short = self.choice.shortfall(self.definition.level)
        return None if short is None else f"view {self.name} is {short}"

    @property
    def choice(self) -> Choice:
        """Who keeps it; raises UsageError where nobody can as it is declared.

        A view that has evolved may have lost what its protocol needs. Nobody asked for that, so it is
        kept by whoever can.
        """
        if self.origin or self.evolved is not None:
            return choice_for_evolved(self.definition)
        return choice_for(self.definition)


def choice_for_evolved(definition: ViewDefinition) -> Choice:
    """Who keeps a view that has followed its sources; raises UsageError where nobody can."""
    try:
        return choice_for(definition)
    except UsageError:
        return choice_for(replace(definition, protocol=None))


def stored_lineage(definition: Definition) -> Lineages:
    """What the warehouse remembers of the names in a view's files."""
    return tuple(
        Lineage(
            CatalogRelation(
                RelationName(*each["relation"]),
                schema_from_json(each["columns"]),
                tuple(each["key"]),
            ),
            None if each["now"] is None else RelationName(*each["now"]),
            tuple((then, now) for then, now in each["names"]),
            tuple(each["said"]),
            each["older"],
        )
        for each in definition.lineage or ()
    )


def _lineage_to_json(lineage: Lineage) -> dict[str, Any]:
    return {
        "relation": list(lineage.before.name),
        "columns": schema_to_json(lineage.before.schema),
        "key": list(lineage.before.key),
        "now": None if lineage.now is None else list(lineage.now),
        "names": [list(pair) for pair in lineage.columns],
        "said": list(lineage.said),
        "older": lineage.is_older,
    }
