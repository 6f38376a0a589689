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
from viewkeeper.live.managers.ring import MakeSystem, RingManager
from viewkeeper.live.questions.change_tables import ChangeTables
from viewkeeper.live.questions.stores import Stores
from viewkeeper.protocols.c_strobe import CStrobe
from viewkeeper.protocols.choice import PERIODIC, RECOMPUTE, SWEEP, VIRTUAL
from viewkeeper.protocols.eca import ECA
from viewkeeper.protocols.messages import Protocol
from viewkeeper.protocols.nested_sweep import NestedSweep
from viewkeeper.protocols.parallel_sweep import ParallelSweep
from viewkeeper.protocols.quiescent_ring import QuiescentRing
from viewkeeper.protocols.registry import unknown_protocol
from viewkeeper.protocols.ring import Ring
from viewkeeper.protocols.ring_terms import RingTerms
from viewkeeper.protocols.simplistic import Simplistic
from viewkeeper.protocols.strobe import Strobe
from viewkeeper.sources.interface import Source
from viewkeeper.spark.session import Spark
from viewkeeper.spark.staged import Staging
from viewkeeper.views.assembly import Contents, WholeView
from viewkeeper.views.pruning import pruned
from viewkeeper.views.upkeep import InitialContents
from viewkeeper.warehouse.warehouse import Warehouse

_ASKING: dict[str, type[Protocol]] = {
    kind.name: kind for kind in (NestedSweep, ParallelSweep, Simplistic, Strobe, CStrobe, ECA)
}
_RINGS: dict[str, MakeSystem] = {
    kind.name: kind.system for kind in (Ring, QuiescentRing, RingTerms)
}
_MEDIATING: dict[str, type[MedwrapManager]] = {"medwrap": MedwrapManager, "mre": MreManager}
_RECOMPUTING = (RECOMPUTE, PERIODIC, VIRTUAL)

# Every protocol that has a manager: the same as those that a view may name, which a test holds.
MANAGED = (SWEEP, *_ASKING, *_RINGS, *_MEDIATING, *_RECOMPUTING)


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
        """The view's manager, which begins at what is committed when its first job comes.

        Raises UsageError for a protocol that has none.
        """
        definition, choice = view.definition, view.choice
        if choice.is_incremental:
            return IncrementalManager(
                definition,
                self.staging,
                self.group_sources,
                self.changes,
                lambda: self._stores(view),
            )
        kinds = {name: self.sources[name].kind for name in definition.sources}
        inputs = ManagerInputs(definition, self.changes, lambda: self._extent(view.name), kinds)
        if choice.is_recomputed:
            return RecomputeManager(inputs, self.spark.bulk)
        if choice.protocol in _RINGS:
            return RingManager(inputs, _RINGS[choice.protocol])
        if choice.protocol in _ASKING:
            return ProtocolManager(inputs, _ASKING[choice.protocol])
        if choice.protocol in _MEDIATING:
            return _MEDIATING[choice.protocol](inputs)
        raise unknown_protocol(choice.protocol, MANAGED)

    def _stores(self, view: View) -> Stores:
        stores = pruned_upkeep(view.definition).stores
        return Stores(stores, self.epochs.stored(view.name, stores))

    def _extent(self, view: str) -> pa.Table:
        snapshot = Warehouse(self.epochs.writer.storage).snapshot()
        return snapshot.read_arrow(view, with_count=True)


def filled(view: View, contents: Contents, share: Callable[[Any], Any]) -> FilledView:
    """A new view over its relations' contents, with what its manager keeps beside it.

    ``share`` is given what several of these are computed from.
    """
    if view.choice.is_incremental:
        upkeep = pruned_upkeep(view.definition)
        return FilledView(view, upkeep.stores, upkeep.initial(contents, share))
    rows = WholeView(pruned(view.definition)).evaluated(contents)
    return FilledView(view, (), InitialContents(rows, {}))
