"""The levels of consistency a view may declare, weakest first. The checker decides them.

A *cut* says, for each source, how many of its transactions are included; V(cut) is the view evaluated
on the sources at that cut; a history is the sequence of states a reader of the view could have seen.
"""

from __future__ import annotations

import enum


class Level(enum.IntEnum):
    """Ordered: each level from WEAK on includes the ones before it, but for CONVERGENT.

    A history can be weak or consistent without being convergent (it never caught up), so those two
    say nothing about its end; STRONG and COMPLETE include all the others.
    """

    NONE = 0
    CONVERGENT = 1
    WEAK = 2
    CONSISTENT = 3
    STRONG = 4
    COMPLETE = 5

    def __str__(self) -> str:
        return self.name.lower()


MEANING: dict[Level, str] = {
    Level.NONE: "some state is no state of the view, and the last one is wrong too",
    Level.CONVERGENT: "once all transactions are handled, the state is right",
    Level.WEAK: "every state is the view at some cut",
    Level.CONSISTENT: "weak, and one non-decreasing sequence of cuts explains all states",
    Level.STRONG: "consistent and convergent",
    Level.COMPLETE: "strong, and the cuts step through every transaction, none skipped",
}

DECLARABLE = (Level.CONVERGENT, Level.STRONG, Level.COMPLETE)
