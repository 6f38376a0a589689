"""The one writer of a warehouse: commits epochs, and keeps the storage in shape.

The order that makes a commit atomic: data files, then the views' tables, then the ledger's row.
Until the row is there nothing happened; once it is there everything did. A process that dies in
between leaves files and table versions that nothing names, and the next writer puts them right.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from viewkeeper.errors import ViewkeeperError, WarehouseError, invariant
from viewkeeper.failpoints import failpoint
from viewkeeper.warehouse import lease
from viewkeeper.warehouse.checksums import LEDGER, Damaged, seal_of
from viewkeeper.warehouse.columns import owner_of, stored_arrow_schema
from viewkeeper.warehouse.commits import (
    EpochCommit,
    Extent,
    check,
    check_written,
    epoch_entry,
    quiet_entry,
    schema_owner,
)
from viewkeeper.warehouse.datafiles import (
    Written,
    numbered,
    stored_form,
    write_arrow,
    write_spark,
)
from viewkeeper.warehouse.dataframes import stored_frame
from viewkeeper.warehouse.entries import Entry, chained
from viewkeeper.warehouse.file_lists import begin_lists, write_list
from viewkeeper.warehouse.head import read_head, write_head
from viewkeeper.warehouse.ledger import FOLDER, Ledger
from viewkeeper.warehouse.reading import view_folder
from viewkeeper.warehouse.recovery import recovered_tables, repair_torn_log
from viewkeeper.warehouse.storage import Storage, storage_errors
from viewkeeper.warehouse.tables import Addition, Conflict, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Clock = Callable[[], dt.datetime]


def system_clock() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class Writer:
    """Holds the lease from construction to `close`. Safe to use from several threads."""

    def __init__(
        self,
        storage: Storage,
        *,
        spark: SparkSession | None = None,
        clock: Clock = system_clock,
        lease_seconds: float = lease.TTL_SECONDS,
        beats_apart: bool = False,
    ) -> None:
        """Take the lease and recover. Raises WarehouseError when another writer holds it.

        ``beats_apart`` keeps the lease also while one long call has Python to itself.
        """
        self.storage = storage
        self.spark = spark
        self.clock = clock
        # Guards everything below, and the order of ledger entries.
        self.lock = threading.RLock()
        # Whether much waits to be committed: the caller may say so, and housekeeping then waits.
        self.is_behind: Callable[[], bool] = lambda: False
        # Held through a whole consolidation or vacuum: those two must not overlap.
        self.maintenance_lock = threading.RLock()
        lease.check_free(storage, clock())
        # Told of every entry once it is durable.
        self.remember: Callable[[Entry], None] = lambda entry: None
        # Views that can't be committed to as they are, and why: a new extent brings one back.
        self.damaged: dict[str, Damaged] = {}
        head = read_head(storage)
        repair_torn_log(storage, FOLDER, 0 if head is None else head.entry + 1, LEDGER)
        self._ledger = Ledger.open(storage)
        self._latest = self._ledger.latest()
        self._latest.views  # noqa: B018  (raises for an entry that we can't carry on from)
        self._token = self._claim()
        self._heartbeat = lease.Heartbeat(
            storage, self._token, clock, lease_seconds, apart=beats_apart
        )
        self._tables: dict[str, Table] = {}
        # After an error: whether the ledger may be ahead of what we believe of it, and whether
        # tables may be ahead of the ledger.
        self._ledger_is_stale = False
        self._tables_are_stale = True
        try:
            self.settled()
            self._seal_old()
        except BaseException:
            self._heartbeat.close()
            raise

    def _claim(self) -> int:
        """Become the only one who can append: everybody else's ledger is out of date from here."""
        claim = quiet_entry(self._latest, "lease", self.clock())
        claim = chained(replace(claim, token=self._latest.token + 1), self._latest)
        try:
            self._ledger.append(claim)
        except Conflict:
            raise WarehouseError(
                "warehouse-held",
                f"another writer took the warehouse in {self.storage.root} a moment ago",
                hint="stop it, or leave it to its work",
            ) from None
        self._latest = claim
        self._tell_head(claim)
        failpoint("after-claim")
        return claim.token

    def _seal_old(self) -> None:
        """Seal the files of views that an older Viewkeeper wrote, as they are found now."""
        unsealed = {
            view: replace(state, seal=seal_of(self._tables[view].files()))
            for view, state in self._latest.views.items()
            if not state.seal and view in self._tables
        }
        if unsealed:
            views = self._latest.views | unsealed
            self.append(quiet_entry(self._latest, "lease", self.clock(), views))

    @property
    def latest(self) -> Entry:
        """The newest committed entry: where to resume from after any error. Writes nothing."""
        with self.lock:
            self._reread()
            return self._latest

    @property
    def token(self) -> int:
        return self._token

    # -- committing -------------------------------------------------------------------------------

    def commit(self, epoch: EpochCommit) -> Entry:
        """Make an epoch visible, wholly or not at all; when this returns it is durable.

        After a WarehouseError look at `latest`: it says whether the epoch got in.
        """
        with self.lock:
            check(epoch, self.settled())
            written: dict[str, Written] = {}
            try:
                with storage_errors("write the epoch's files"):
                    for view in sorted(epoch.views):
                        if view not in self._latest.views:
                            self._clear_place(view)
                        elif view not in self._tables:
                            self._give_up(epoch, view)
                        written[view] = self._write(epoch, view)
                        check_written(epoch, view, written[view])
                    failpoint("after-files")
                versions = self._tables_with(epoch, written)
            except BaseException:
                self._tables_are_stale = True
                self.forget(written)
                raise
            entry = epoch_entry(epoch, self._latest, written, versions, self.clock())
            try:
                entry = self.append(entry)
                self._mend(epoch)
                return entry
            except WarehouseError:
                # Surely not in: the space may be needed. A store, unlike a folder, may still write
                # what it had to write before; there, vacuum will know.
                is_in = self._ledger_is_stale or _is_same(self._latest, entry)
                if self.storage.is_local and not is_in:
                    self.forget(written)
                raise

    def _write(self, epoch: EpochCommit, view: str) -> Written:
        """The view's rows as files: Arrow tables directly, DataFrames by Spark."""
        change = epoch.views[view]
        schema = schema_owner(epoch, view, self._latest).schema
        folder = view_folder(view)
        whole = isinstance(change, Extent)
        purpose = "base" if whole else "changes"
        self.storage.make_folder(folder)
        if isinstance(change.rows, pa.Table):
            rows = numbered(change.rows, epoch.last_txn) if whole else change.rows
            return write_arrow(self.storage, folder, stored_form(view, rows, schema), purpose)
        frame = stored_frame(view, change.rows, schema, epoch.last_txn if whole else None)
        return write_spark(self.storage, folder, frame, schema, purpose)

    def _tables_with(self, epoch: EpochCommit, written: Mapping[str, Written]) -> dict[str, int]:
        """Commit the tables, on top of what the ledger names, whatever else got into them."""
        try:
            return self._commit_tables(epoch, written)
        except Conflict:
            # A writer that lost the lease was here, and will learn of it at the ledger. Seen twice
            # in a row it is something else.
            self._tables_are_stale = True
            self.settled()
        try:
            return self._commit_tables(epoch, written)
        except Conflict as error:
            raise self.disturbed("an epoch", error) from None

    def _commit_tables(self, epoch: EpochCommit, written: Mapping[str, Written]) -> dict[str, int]:
        """A new version of every table that changes, and its number. Raises `Conflict`."""
        versions = {}
        refilled = {view for view, change in epoch.views.items() if isinstance(change, Extent)}
        for view in (refilled | epoch.dropped) & self._latest.views.keys():
            if view in self._tables:
                self.list_files(view)
        for view, files in written.items():
            schema = stored_arrow_schema(schema_owner(epoch, view, self._latest).schema)
            additions = [Addition.of(file) for file in files.files]
            whole = isinstance(epoch.views[view], Extent)
            if not whole and not additions:
                continue
            table = self._table(view, schema, may_create=whole)
            versions[view] = table.commit(schema, additions, replace=whole)
            with storage_errors("commit the epoch"):
                failpoint("after-table")
        return versions

    def _table(self, view: str, schema: pa.Schema, *, may_create: bool) -> Table:
        table = self._tables.get(view)
        if table is None:
            invariant(may_create, f"view {view} has no table")
            folder = view_folder(view)
            # Its place was cleared; what is there now came since, and is about to be replaced.
            table = Table.open(self.storage, folder)
            if table is None:
                table = Table.create(self.storage, folder, schema)
                begin_lists(self.storage, folder)
            self._tables[view] = table
        return table

    def list_files(self, view: str) -> None:
        """Write down which files the view's state has: its base is about to end. Holding `lock`."""
        version = self._latest.views[view].version
        write_list(self.storage, view_folder(view), version, self._tables[view].files())

    def _clear_place(self, view: str) -> None:
        """Make room for a new view: something of its name may be left, whole or in pieces."""
        folder = view_folder(view)
        self._tables.pop(view, None)  # of a view dropped since: vacuum may have taken its files
        named = [e.views[view].version for e in self._ledger.entries() if view in e.views]
        if named:
            # Dropped, and still readable at older states: the table goes on.
            repair_torn_log(self.storage, folder, max(named), view)
            left = Table.open(self.storage, folder)
            if left is not None:
                self._tables[view] = left
        else:
            self.storage.remove_tree(folder)

    def _give_up(self, epoch: EpochCommit, view: str) -> None:
        """Make room where the table's log is damaged: for a new extent, and for nothing else."""
        if not isinstance(epoch.views[view], Extent):
            raise self.damaged[owner_of(view) or view]
        self.storage.remove_tree(view_folder(view))

    def _mend(self, epoch: EpochCommit) -> None:
        """Views that got a new extent, or are gone, are well again."""
        whole = {view for view, change in epoch.views.items() if isinstance(change, Extent)}
        for view in (whole | epoch.dropped) & self.damaged.keys():
            del self.damaged[view]

    def disturbed(self, what: str, error: Conflict) -> WarehouseError:
        """The error for tables that move under our hands."""
        return WarehouseError(
            "table-disturbed",
            f"could not commit {what}: somebody else writes to the warehouse in {self.storage.root}",
            detail=str(error),
            hint="make sure that nothing but Viewkeeper writes there, then try again",
        )

    def forget(self, written: Mapping[str, Written]) -> None:
        """Delete files that no ledger entry will ever name; what can't be deleted, vacuum finds."""
        for view, files in written.items():
            for file in files.files:
                try:
                    self.storage.remove_file(self.storage.path(view_folder(view), file.path))
                except ViewkeeperError:
                    return

    # -- the ledger -------------------------------------------------------------------------------

    def append(self, entry: Entry, kept: tuple[Entry, ...] | None = None) -> Entry:
        """Add the entry to the ledger: the one moment at which anything changes for anybody.

        With ``kept`` the ledger is cut down to these entries in the same commit. For the writer's
        own parts (commits, consolidation, vacuum), which hold `lock`.
        """
        entry = chained(entry, self._latest)
        try:
            with storage_errors("write the ledger"):
                failpoint("before-ledger")
                if kept is None:
                    self._ledger.append(entry)
                else:
                    self._ledger.rewrite([*kept, entry])
        except (Conflict, WarehouseError) as error:
            self.unsettle()
            # The row may have got in before the error: the ledger knows.
            self._reread()
            if not _is_same(self._latest, entry):
                raise self._not_appended(error) from error
        except BaseException:
            self.unsettle()
            raise
        self._latest = entry
        self._tell_head(entry)
        with storage_errors("write the ledger"):
            failpoint("after-ledger")
        return entry

    def _tell_head(self, entry: Entry) -> None:
        """Remember the entry elsewhere. A disk that is full for it now is no reason to stop."""
        with contextlib.suppress(ViewkeeperError, OSError):
            write_head(self.storage, entry)
            self.remember(entry)

    def _not_appended(self, error: Exception) -> WarehouseError:
        if isinstance(error, WarehouseError):
            return error
        return WarehouseError(
            "ledger-disturbed",
            f"could not append to the ledger in {self.storage.root}",
            detail=str(error),
            hint="try again",
        )

    def _reread(self) -> None:
        """After an error: see what the ledger says. Raises WarehouseError when we were replaced."""
        if not self._ledger_is_stale:
            return
        self._ledger = Ledger.open(self.storage)
        latest = self._ledger.latest()
        if latest.token != self._token:
            raise WarehouseError(
                "lease-lost",
                f"another writer has taken over the warehouse in {self.storage.root}",
                detail=f"our token is {self._token}, the newest is {latest.token}",
                hint="stop this process; what it committed before is safe",
            )
        self._latest = latest
        self._ledger_is_stale = False

    def settled(self) -> Entry:
        """`latest`, with the tables made what it says where an error left them otherwise.

        To be called, holding `lock`, before any table is committed to.
        """
        self._reread()
        if self._tables_are_stale:
            found = recovered_tables(self.storage, self._latest)
            self._tables = found.tables
            # In place: the run holds on to this very object.
            self.damaged.clear()
            self.damaged.update(found.damaged)
            self._tables_are_stale = False
        return self._latest

    def unsettle(self) -> None:
        """Something failed half-way: look again before the next commit."""
        self._ledger_is_stale = self._tables_are_stale = True

    def entries(self) -> tuple[Entry, ...]:
        """All entries kept by the ledger, with all that they say."""
        with self.lock:
            self._reread()
            return self._ledger.entries(with_places=True)

    def table(self, view: str) -> Table:
        """The view's table at its latest version; to be used while holding `lock`."""
        return self._tables[view]

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the lease back. Idempotent."""
        self._heartbeat.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _is_same(found: Entry, meant: Entry) -> bool:
    """Whether the ledger's entry is the one we tried to append (JSON may spell its values otherwise)."""
    return (found.entry, found.token, found.committed_at) == (
        meant.entry,
        meant.token,
        meant.committed_at,
    )
