"""Why a simulated source does not answer at a cut."""

from __future__ import annotations

import random
from collections.abc import Mapping

from viewkeeper.errors import SourceError
from viewkeeper.simulator.engine.sources import SimulatedCut
from viewkeeper.sources.interface import broken_query, cut_overtaken

Cuts = Mapping[str, SimulatedCut]


def away(source: str) -> SourceError:
    return SourceError("away", "it is away", source=source, retryable=True)


def lacks(source: str, relation: str) -> SourceError:
    what = f"{source} has no {relation}"
    return SourceError(
        "unknown-relation", what, source=source, retryable=False, hint="await its cause"
    )


def lost(cuts: Cuts) -> SourceError | None:
    """The server was restarted since: cuts can be asked nothing any more."""
    return next((away(name) for name, cut in cuts.items() if cut.is_lost), None)


def refused(cuts: Cuts, chance: random.Random) -> SourceError | None:
    """Once a relation of a cut has another schema, a database may answer as of before, refuse the question, or have let
    its owner overtake the cut."""
    outdated = [name for name, cut in cuts.items() if cut.is_outdated]
    if not outdated or chance.randrange(2):
        return lost(cuts)
    refusal = cut_overtaken if chance.randrange(2) else broken_query
    return refusal(outdated[0], "its schema has changed")
