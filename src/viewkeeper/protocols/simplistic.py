"""The simplistic approach: every relation is asked by itself, as if it were a source of its own.

Paper: MEDWRAP (2002), section 2. Level: complete. Assumes: nothing beyond reliable delivery.

The mediator runs SWEEP over relations. It is right, because the error of an answer about one relation
can always be computed from the changes of that one relation. It is slow, because a source with several
relations is asked once for each and never joins them itself: Z − 1 questions per update, with Z the
number of relations in the view, where MEDWRAP asks N − 1 sources.

Our SWEEP takes sources with several relations in exactly this way, one question for each occurrence, so
there is nothing to add to it but the name. One thing is kept better than "each relation a source": a
transaction over several relations stays one, and is never seen in half.
"""

from __future__ import annotations

from viewkeeper.protocols.sweep import Sweep
from viewkeeper.views.level import Level


class Simplistic(Sweep):
    """SWEEP over relations."""

    name = "simplistic"
    asks = "rows by key, Z − 1 questions for each update over Z relations"
    level = Level.COMPLETE
    paper = "MEDWRAP, section 2"
