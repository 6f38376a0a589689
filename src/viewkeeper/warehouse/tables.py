"""One Delta table, committed through delta-rs exactly on top of the version we know.

Every commit is tried once: if somebody else has committed meanwhile it fails with `Conflict`
instead of being moved on top of theirs. That makes the ledger's table the fence between writers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, TableFeatures
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse.checksums import damaged
from viewkeeper.warehouse.columns import TXN, owner_of
from viewkeeper.warehouse.datafiles import DataFile
from viewkeeper.warehouse.storage import Storage, storage_errors

# A version is opened by replaying commits since the last checkpoint: at 100, delta-rs's default,
# small commits cost twice as much as at 20.
CHECKPOINT_INTERVAL = 20
_CONFIGURATION = {
    # Old versions go by our vacuum only, which knows what the ledger still names.
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
}
_ONCE = CommitProperties(max_commit_retries=0)


class Conflict(Exception):
    """Somebody committed to the table since we looked. Never shown to people."""


@dataclass(frozen=True)
class Addition:
    """A file to be named by a table, with its statistics as JSON."""

    path: str
    size: int
    statistics: str

    @classmethod
    def of(cls, file: DataFile) -> Addition:
        return cls(file.path, file.size, file.statistics)


class Table:
    """A handle on one Delta table at the version it was opened, or last committed, at."""

    def __init__(self, storage: Storage, folder: str, delta: DeltaTable) -> None:
        self._storage = storage
        self.folder = folder
        self._delta = delta

    @classmethod
    def open(cls, storage: Storage, folder: str, version: int | None = None) -> Table | None:
        """The table at a version, or at its latest; None when there is no table."""
        uri = storage.uri(folder)
        with storage_errors(f"open the table {uri}"):
            try:
                delta = DeltaTable(uri, version=version, storage_options=dict(storage.options))
            except TableNotFoundError:
                return None
        return cls(storage, folder, delta)

    @classmethod
    def at(cls, storage: Storage, folder: str, version: int) -> Table:
        """The table at a version that the ledger names. Raises WarehouseError when it is gone."""
        table = cls.open(storage, folder, version)
        if table is None:
            raise WarehouseError(
                "table-missing",
                f"version {version} of the table {storage.uri(folder)} is not there",
                detail="the ledger named it when this reader looked",
                hint="after a vacuum take a new snapshot; if something else than Viewkeeper removed "
                "it, restore it from a backup",
            )
        return table

    @classmethod
    def create(
        cls,
        storage: Storage,
        folder: str,
        schema: pa.Schema,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Table:
        """A new, empty table with ``more`` settings; the place must be free. Raises `Conflict`."""
        uri = storage.uri(folder)
        storage.make_folder(folder)
        with storage_errors(f"create the table {uri}"):
            try:
                delta = DeltaTable.create(
                    uri,
                    schema,
                    configuration={**_CONFIGURATION, **more},
                    storage_options=dict(storage.options),
                    commit_properties=_ONCE,
                )
            except DeltaError as error:
                raise _conflict_in(error) from error
        table = cls(storage, folder, delta)
        table._make_durable()
        storage.sync(storage.path(folder, "_delta_log"))
        return table

    @property
    def version(self) -> int:
        return int(self._delta.version())

    def arrow_actions(self) -> pa.Table:
        """The files that the version names, with their statistics, one row each."""
        return pa.table(self._delta.get_add_actions(flatten=True))

    def files(self) -> tuple[DataFile, ...]:
        """The data files of a view table's version, sorted by path; raises `Damaged` for another table's."""
        actions = self.arrow_actions()
        needed = {"path", "size_bytes", "num_records", f"min.{TXN}", f"max.{TXN}"}
        if missing := sorted(needed - set(actions.column_names)):
            view = self.folder.rpartition("/")[2]
            told = f"its log does not tell {', '.join(missing)} of its files"
            raise damaged(self._storage.uri(self.folder), owner_of(view) or view, told)
        rows = actions.to_pylist()
        return tuple(
            DataFile(
                row["path"],
                row["size_bytes"],
                row["num_records"],
                row[f"min.{TXN}"],
                row[f"max.{TXN}"],
            )
            for row in sorted(rows, key=lambda row: row["path"])
        )

    @property
    def content(self) -> tuple[str, frozenset[str]]:
        """What tells two versions apart: columns and files."""
        paths = self.arrow_actions()["path"].to_pylist()
        return self._delta.schema().to_json(), frozenset(paths)

    def commit(
        self,
        schema: pa.Schema,
        add: Iterable[Addition],
        remove: Iterable[str] = (),
        *,
        replace: bool = False,
        data_change: bool = True,
    ) -> int:
        """Name and un-name files in one version, whose number is returned.

        ``replace`` un-names all there were and takes on ``schema``; without ``data_change`` the
        table is only rearranged. Raises `Conflict`.
        """
        now = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(a.path, a.size, {}, now, data_change, a.statistics) for a in add
        ]
        actions += [RemoveAction(path, data_change, now, None, {}) for path in remove]
        with storage_errors(f"commit to the table {self._storage.uri(self.folder)}"):
            try:
                if replace and _needs_feature(self._delta, schema):
                    self._delta.alter.add_feature(
                        TableFeatures.TimestampWithoutTimezone,
                        allow_protocol_versions_increase=True,
                        commit_properties=_ONCE,
                    )
                    self._delta.update_incremental()
                self._delta.create_write_transaction(
                    actions,
                    "overwrite" if replace else "append",
                    schema,
                    commit_properties=_ONCE,
                )
            except DeltaError as error:
                raise _conflict_in(error) from error
            # A handle does not follow its own commits.
            self._delta.update_incremental()
        self._make_durable()
        return self.version

    def restore(self, version: int) -> int:
        """Make a new latest version that holds what ``version`` held."""
        with storage_errors(f"restore the table {self._storage.uri(self.folder)}"):
            try:
                self._delta.restore(version, commit_properties=_ONCE)
            except DeltaError as error:
                raise _conflict_in(error) from error
            self._delta.update_incremental()
        self._make_durable()
        return self.version

    def _make_durable(self) -> None:
        """The commit just made, and the checkpoint that delta-rs may have written with it."""
        if not self._storage.is_local:
            return
        log = self._storage.path(self.folder, "_delta_log")
        paths = [f"{log}/{self.version:020}.json"]
        if self.version % CHECKPOINT_INTERVAL in (0, CHECKPOINT_INTERVAL - 1):
            paths += [
                info.path
                for info in self._storage.list_files(self.folder, "_delta_log")
                if info.base_name.startswith(("_last_checkpoint", f"{self.version:020}."))
            ]
        self._storage.sync(*dict.fromkeys(paths))


def _conflict_in(error: DeltaError) -> Exception:
    """A lost race as `Conflict`; a full disk also comes as a failed commit and stays what it is."""
    text = str(error)
    lost = isinstance(error, CommitFailedError) or "already exists" in text
    return Conflict(text) if lost and "No space left" not in text else error


def _needs_feature(delta: DeltaTable, schema: pa.Schema) -> bool:
    """Delta asks for a table feature before a column may be a timestamp without a zone."""
    local = any(pa.types.is_timestamp(field.type) and field.type.tz is None for field in schema)
    return local and "timestampNtz" not in (delta.protocol().reader_features or [])
