"""A view as the runtime knows it."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.errors import UsageError
from viewkeeper.views.definition import ViewDefinition


@dataclass(frozen=True)
class View:
    """A view to be kept: its definition over whole relations, and its text."""

    definition: ViewDefinition
    text: str

    @property
    def name(self) -> str:
        return self.definition.name


# Live, SWEEP always works in batches; the simulated forms differ in their messages only.
LIVE_PROTOCOLS = (None, "sweep")


def require_live(definition: ViewDefinition) -> None:
    """Raise UsageError for a protocol that only the simulator plays yet."""
    if definition.protocol not in LIVE_PROTOCOLS:
        raise UsageError(
            "protocol-not-live",
            f"{definition.name} asks for {definition.protocol}, which does not run live yet",
            detail="live views are kept by sweep, in batches; it reaches complete consistency",
            hint="write `-- protocol: sweep`, or leave the line out",
        )
