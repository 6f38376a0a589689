"""Naive maintenance: ask, believe, install. Its users believe in complete; it is here to be caught.

The maintenance query R_1 ⊗ … ⊗ ΔR_i ⊗ … ⊗ R_n is right only if nothing else changes meanwhile.
Without compensation a concurrent update is counted twice or not at all: the anomaly from which the
whole field started, and the first victim of our checker.
"""

from __future__ import annotations

from viewkeeper.protocols.messages import AnswerArrived
from viewkeeper.protocols.sweep import Sweep
from viewkeeper.protocols.sweeping import Sweep as OneSweep
from viewkeeper.views.level import Level


class Naive(Sweep):
    """SWEEP without its correction."""

    name = "naive"
    asks = "as sweep, and believes every answer"
    level = Level.COMPLETE
    paper = "the anomaly of SWEEP, section 3"

    def corrected(self, sweep: OneSweep, answer: AnswerArrived) -> OneSweep:
        (rows,) = answer.answers
        return sweep.joined(rows)
