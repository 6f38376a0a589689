"""A view as a plain Delta table for other tools: its rows and nothing else, always consolidated.

Rewritten as a whole when the view has changed, so it costs what the view's size costs: an option per
view, done in the background and at the end of a run. Each version shows one state; the ledger says which.
Several published tables at their latest versions need not show the same state.

After a kill the table may be one version ahead of the ledger. That version shows a state that was committed
before it was written, and it is written over.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow.parquet as pq

from viewkeeper.arrow import arrow_schema
from viewkeeper.errors import WarehouseError
from viewkeeper.failpoints import failpoint
from viewkeeper.warehouse.checksums import checked, checked_name, seal_of
from viewkeeper.warehouse.commits import quiet_entry
from viewkeeper.warehouse.datafiles import COMPRESSION, DataFile, encoded, spark_error
from viewkeeper.warehouse.dataframes import extent_frame
from viewkeeper.warehouse.entries import Entry, Published
from viewkeeper.warehouse.reading import ReadPlan, extent, extent_plan, repeated
from viewkeeper.warehouse.recovery import repair_torn_log
from viewkeeper.warehouse.storage import storage_errors
from viewkeeper.warehouse.tables import Addition, Conflict, Table
from viewkeeper.warehouse.writer import Writer

PUBLISHED = "published"
# As for folding: Spark where one process would need much memory.
ARROW_ROWS_MAX = 1_000_000


def published_folder(view: str) -> str:
    """Where a view's plain table lies in the warehouse."""
    return f"{PUBLISHED}/{view}"


def publish(writer: Writer) -> tuple[str, ...]:
    """Bring the plain tables of all views that ask for one to the newest state; their names.

    What no longer asks is forgotten: vacuum then deletes its table, which would show an old state for ever.
    """
    with writer.maintenance_lock:
        latest = writer.latest
        plans = _due(writer, latest)
        unwanted = {v for v, s in latest.views.items() if s.published and not s.definition.publish}
        shown: dict[str, Published | None] = dict.fromkeys(unwanted)
        for view, plan in plans.items():
            version, seal = _publish(writer, plan, latest.views[view].published)
            incarnation = latest.views[view].incarnation
            shown[view] = Published(version, latest.last_txn, incarnation, seal)
        if not shown:
            return ()
        with writer.lock:
            now = writer.latest
            views = dict(now.views)
            for view, published in shown.items():
                if view in views:
                    views[view] = replace(views[view], published=published)
            writer.append(quiet_entry(now, "publish", writer.clock(), views))
        return tuple(plans)


def _due(writer: Writer, latest: Entry) -> dict[str, ReadPlan]:
    """How to read the views whose plain table is not what they are now."""
    plans = {}
    for view, state in sorted(latest.views.items()):
        if not state.definition.publish or view in writer.damaged:
            continue
        plan = extent_plan(writer.storage, view, state, latest.last_txn)
        known = state.published
        newest = max((file.max_txn for file in plan.files), default=0)
        if known is None or known.incarnation != state.incarnation or newest > known.txn:
            plans[view] = plan
    return plans


def _publish(writer: Writer, plan: ReadPlan, known: Published | None) -> tuple[int, str]:
    """The rows of the plan as a new version of the plain table; its number, and the seal of its files."""
    storage = writer.storage
    folder = published_folder(plan.view)
    schema = arrow_schema(plan.schema)
    try:
        repair_torn_log(storage, folder, known.version if known else -1, plan.view)
        table = Table.open(storage, folder)
    except WarehouseError:
        # Damaged: it is written as a whole, so nothing of the old one is needed.
        storage.remove_tree(folder)
        table = None
    try:
        table = table or Table.create(storage, folder, schema)
        files = _plain_files(writer, plan, folder)
        version = table.commit(schema, [plain_addition(file) for file in files], replace=True)
    except Conflict as error:
        raise writer.disturbed(f"the plain table of {plan.view}", error) from None
    with storage_errors("publish"):
        failpoint("publish-after-table")
    return version, seal_of(files)


def plain_addition(file: DataFile) -> Addition:
    return Addition(file.path, file.size, f'{{"numRecords": {file.rows}}}')


def published_files(table: Table) -> list[DataFile]:
    """The files of a plain table's version, as they are sealed: its rows have no numbers."""
    rows = table.arrow_actions().to_pylist()
    return [
        DataFile(row["path"], row["size_bytes"], row.get("num_records") or 0, 0, 0) for row in rows
    ]


def _plain_files(writer: Writer, plan: ReadPlan, folder: str) -> list[DataFile]:
    storage = writer.storage
    name = f"rows-{uuid.uuid4().hex}"
    if writer.spark is not None and plan.base_rows + plan.log_rows > ARROW_ROWS_MAX:
        frame = extent_frame(writer.spark, storage, plan, with_count=False)
        options = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
        try:
            frame.write.options(**options, compression=COMPRESSION).parquet(
                storage.spark_uri(folder, name)
            )
        except Exception as error:
            storage.remove_tree(folder, name)
            raise spark_error(f"publish {plan.view}", error) from error
    else:
        storage.make_folder(folder, name)
        rows = repeated(extent(storage, plan, distinct=False))
        content = encoded(rows, compression=COMPRESSION)
        file = f"{name}/{checked_name('part', content)}"
        storage.write_new(content, folder, file)
        return [DataFile(file, len(content), rows.num_rows, 0, 0)]
    return _spark_files(writer, folder, name)


def _spark_files(writer: Writer, folder: str, name: str) -> list[DataFile]:
    storage = writer.storage
    files = []
    for info in storage.list_files(folder, name):
        if info.path.endswith(".parquet"):
            with storage_errors(f"read {info.path}"):
                rows = pq.ParquetFile(info.path, filesystem=storage.filesystem).metadata.num_rows
            files.append(DataFile(f"{name}/{checked(storage, info.path)}", info.size, rows, 0, 0))
    paths = (storage.path(folder, file.path) for file in files)
    storage.sync(storage.path(folder, name), *paths)
    return files
