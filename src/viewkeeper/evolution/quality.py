"""How good a rewriting of a view is: the measure by which one of several is chosen.

More attributes kept is better; then an extent closer to the old one; then fewer relations to join, then
fewer sources to ask. The order of the knowledge base decides between equals.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class Extent(enum.Enum):
    """What the rewritten view's rows are to the old ones, as sets over the common attributes.

    As a view's parameter: what its user will accept.
    """

    EQUAL = "equal"
    SUPERSET = "superset"
    SUBSET = "subset"
    ANY = "any"

    def accepts(self, found: Extent) -> bool:
        """Whether a view with this parameter may become one with extent ``found``."""
        return self is Extent.ANY or found in (Extent.EQUAL, self)

    def then(self, other: Extent) -> Extent:
        """The extent after one rewriting and then another."""
        if self is Extent.EQUAL:
            return other
        return self if other in (Extent.EQUAL, self) else Extent.ANY


_DISTANCE = {Extent.EQUAL: 0, Extent.SUPERSET: 1, Extent.SUBSET: 1, Extent.ANY: 2}


@dataclass(frozen=True)
class Quality:
    """Of a rewriting: ``attributes`` of ``attributes_before`` columns kept, its extent, its cost."""

    attributes: int
    attributes_before: int
    extent: Extent
    relations: int
    sources: int

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Lower is better."""
        return (-self.attributes, _DISTANCE[self.extent], self.relations, self.sources)

    def __str__(self) -> str:
        return (
            f"keeps {self.attributes} of {self.attributes_before} attributes, extent "
            f"{self.extent.value}, joins {self.relations} relations of {self.sources} sources"
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "attributes": self.attributes,
            "attributes_before": self.attributes_before,
            "extent": self.extent.value,
            "relations": self.relations,
            "sources": self.sources,
        }
