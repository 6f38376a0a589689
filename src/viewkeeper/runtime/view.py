"""A view as the runtime knows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from viewkeeper.errors import UsageError
from viewkeeper.evolution.preferences import Preferences
from viewkeeper.protocols.choice import Choice, choice_for
from viewkeeper.views.definition import LOCAL, ViewDefinition
from viewkeeper.views.storing import definition_as_text
from viewkeeper.warehouse.columns import schema_to_json
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
            origin=self.origin,
            relations=relations,
            evolved=self.evolved,
            tree=definition_as_text(self.definition) if self._is_more_than_its_text else "",
        )

    @property
    def _is_more_than_its_text(self) -> bool:
        """Whether its text alone does not tell what it is: it evolved, or others that it reads may."""
        return bool(self.origin) or READS in self.text

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def choice(self) -> Choice:
        """Who keeps it; raises UsageError where nobody can as it is declared.

        A view that has evolved may have lost what its protocol needs. Nobody asked for that, so it is
        kept by whoever can.
        """
        try:
            return choice_for(self.definition)
        except UsageError:
            if self.origin:
                return choice_for(replace(self.definition, protocol=None))
            raise
