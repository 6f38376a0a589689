"""What goes into the management of an evolving view, and what comes out: events and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewkeeper.evolution.adaptation import Method
from viewkeeper.evolution.changes import Update
from viewkeeper.evolution.versions import ViewVersion
from viewkeeper.protocols.messages import InstallChange, Reflected, SourceSettled
from viewkeeper.timeline import Cut

# -- events -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UpdateArrived:
    """The next update of its source, data or schema, in the source's order."""

    update: Update


@dataclass(frozen=True)
class RowsArrived:
    """The answer to a `ReadRelation`; it arrives only after every update that it reflects.

    Columns are those that were asked for, in that order. ``reflects`` counts schema changes too.
    """

    question: int
    rows: Any
    reflects: Reflected


@dataclass(frozen=True)
class QueryBroken:
    """The source could not answer: what was asked for is not there (any more).

    It arrives only after every update that the source had made when it refused.
    """

    question: int


Event = UpdateArrived | RowsArrived | QueryBroken | SourceSettled

# -- actions ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadRelation:
    """Read these columns, by the names they have at the source now, at any moment from now on.

    ``keys`` has one column for each of ``key_columns``, in their order and without NULLs: only rows
    that match are needed. None asks for all rows.
    """

    question: int
    source: str
    relation: str
    columns: tuple[str, ...]
    key_columns: tuple[str, ...] = ()
    keys: Any = None


@dataclass(frozen=True)
class InstallVersion:
    """Replace the view by a version of it, with this extent; it then is that version at ``cut``.

    ``included``: the updates that came in with it, schema changes and aborted data changes.
    """

    version: ViewVersion
    extent: Any
    cut: Cut
    included: tuple[Update, ...]
    method: Method
    reason: str = ""


@dataclass(frozen=True)
class RetireView:
    """The view can't be kept any more; its last state, at ``cut``, stays readable.

    ``unreflected``: the updates that were received and are in no state.
    """

    reason: str
    cut: Cut
    unreflected: tuple[Update, ...]


Action = ReadRelation | InstallChange | InstallVersion | RetireView
