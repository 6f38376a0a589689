"""The manager that a view's choice of protocol asks for, and what a new view begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from viewkeeper.engine.view import View
from viewkeeper.live.epochs import Epochs, FilledView
from viewkeeper.live.managers.buffering import ManagerInputs
from viewkeeper.live.managers.live import IncrementalManager, LiveManager, pruned_upkeep
from viewkeeper.live.managers.medwrap import MedwrapManager, MreManager
from viewkeeper.live.managers.protocol import ProtocolManager
from viewkeeper.live.managers.recompute import RecomputeManager
from viewkeeper.live.managers.ring import RingManager
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.live.questions.stores import Stores
from viewkeeper.protocols.registry import (
    LIVE,
    PROTOCOLS,
    RINGS,
    Manager,
    Registered,
    unknown_protocol,
)
from viewkeeper.sources.interface import Source
from viewkeeper.spark.session import Spark
from viewkeeper.spark.staged import Staging
from viewkeeper.views.assembly import Contents, WholeView
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import InitialContents
from viewkeeper.warehouse.warehouse import Warehouse


@dataclass(frozen=True)
class ManagerFactory:
    """What the managers of one group are made with."""

    staging: Staging
    # All that the group reads, where a view reads fewer.
    group_sources: tuple[str, ...]
    changes: ChangeTables
    sources: Mapping[str, Source]
    spark: Spark
    epochs: Epochs

    def manager(self, view: View) -> LiveManager:
        """The view's manager, which begins at what is committed when its first job comes."""
        record = LIVE[view.choice.protocol]
        if record.manager is None:
            raise unknown_protocol(record.name, LIVE)
        return MADE_BY[record.manager](self, view, record)

    def inputs(self, view: View) -> ManagerInputs:
        """What a manager needs that buffers transactions until its job."""
        kinds = {name: self.sources[name].kind for name in view.definition.sources}
        return ManagerInputs(view.definition, self.changes, lambda: self._extent(view.name), kinds)

    def incremental(self, view: View, record: Registered) -> LiveManager:
        stores = lambda: self._stores(view)  # noqa: E731
        return IncrementalManager(
            view.definition, self.staging, self.group_sources, self.changes, stores
        )

    def _stores(self, view: View) -> Stores:
        stores = pruned_upkeep(view.definition).stores
        return Stores(stores, self.epochs.stored(view.name, stores))

    def _extent(self, view: str) -> pa.Table:
        snapshot = Warehouse(self.epochs.writer.storage).snapshot()
        return snapshot.read_arrow(view, with_count=True)


# One factory for each kind of manager that the registry names.
MADE_BY: dict[Manager, Callable[[ManagerFactory, View, Registered], LiveManager]] = {
    Manager.INCREMENTAL: ManagerFactory.incremental,
    Manager.PROTOCOL: lambda f, view, it: ProtocolManager(f.inputs(view), PROTOCOLS[it.name]),
    Manager.RING: lambda f, view, it: RingManager(f.inputs(view), RINGS[it.name].system),
    Manager.MEDWRAP: lambda f, view, it: MedwrapManager(f.inputs(view)),
    Manager.MRE: lambda f, view, it: MreManager(f.inputs(view)),
    Manager.RECOMPUTE: lambda f, view, it: RecomputeManager(f.inputs(view), f.spark.bulk),
}


def filled(view: View, contents: Contents, share: Callable[[Any], Any]) -> FilledView:
    """A new view over its relations' contents, with what its manager keeps beside it.

    ``share`` is given what several of these are computed from.
    """
    if view.choice.is_incremental:
        upkeep = pruned_upkeep(view.definition)
        return FilledView(view, upkeep.stores, upkeep.initial(contents, share))
    rows = WholeView(pruned(view.definition)).evaluated(contents)
    return FilledView(view, (), InitialContents(rows, {}))
