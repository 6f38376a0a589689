"""The auditor of a run: a row that should not be there, and a file that somebody touched, found and named."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from live.pipeline.traffic import fill
from viewkeeper.live.auditing.audit import audit_view
from viewkeeper.live.auditing.auditor import Auditor, AuditSettings
from viewkeeper.project.keeper import Keeper
from viewkeeper.reports.metrics import Metrics
from viewkeeper.reports.run_state import RunState, read_run_state
from viewkeeper.run_events import ViewAudited
from viewkeeper.warehouse.commits import Changes, EpochCommit
from viewkeeper.warehouse.reading import view_folder

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

VIEWS = {
    "a_sales": """SELECT o.o_id, o.qty, c.name, r.rname
        FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
        JOIN geo.regions r ON c.region_id = r.region_id""",
    "b_per_customer": """SELECT c.cust_id, COUNT(*) AS orders, SUM(o.qty) AS qty
        FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id GROUP BY c.cust_id""",
}


def put_a_wrong_row(pipeline, view: str, row: dict, count: int = 1) -> None:
    """What a defect of ours would do: a change of no transaction, committed like any other."""
    number = pipeline.writer.latest.last_txn + 1
    table = pa.table({n: [v] for n, v in row.items()} | {"_count": [count], "_txn": [number]})
    pipeline.writer.commit(
        EpochCommit(first_txn=number, last_txn=number, views={view: Changes(table)})
    )


def change_a_stored_value(pipeline, view: str, column: str) -> None:
    """What a bad disk or a hasty hand would do to one file of a view."""
    writer = pipeline.writer
    version = writer.latest.views[view].version
    stored = DeltaTable(writer.storage.path(view_folder(view)), version=version)
    file = max(map(Path, stored.file_uris()), key=lambda path: path.stat().st_size)
    table = pq.read_table(file)
    values = table.column(column).to_pylist()
    values[0] += 1_000
    place = table.schema.get_field_index(column)
    field = table.schema.field(place)
    pq.write_table(table.set_column(place, field, pa.array(values, field.type)), file)


def test_wrong_rows_and_touched_files_are_found_and_named(shop, running_spark):
    fill(shop)
    for name, text in VIEWS.items():
        shop.write_view(name, text)
    metrics = Metrics()
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline() as pipeline,
        RunState(shop.folder, keeper.views) as state,
    ):
        pipeline.load()
        settings = AuditSettings(every_seconds=1, keys=1_000)
        auditor = Auditor(settings, shop.folder, random.Random(7))

        def next_audit() -> dict:
            found = auditor.audit(pipeline, keeper.warehouse())
            state.on_event(found)
            metrics.on_event(found)
            return found.as_dict()

        shop.run("shop", "INSERT INTO orders VALUES (900, 1, 8)")
        targets = pipeline.committed_now()
        while not pipeline.has_applied(targets):
            pipeline.cycle(0.2)
        for view in VIEWS:
            found = next_audit()
            assert (found["view"], found["verdict"]) == (view, "equal"), found
            assert found["how"] == "fingerprint and sample"
            assert "keys" in found["checked"]

        wrong = {"o_id": 12_345, "qty": 1, "name": "nobody", "rname": "nowhere"}
        put_a_wrong_row(pipeline, "a_sales", wrong)
        found = next_audit()
        assert (found["view"], found["verdict"]) == ("a_sales", "different"), found
        assert found["extra"] == [{"row": list(wrong.values()), "count": 1}]
        assert found["missing"] == []

        change_a_stored_value(pipeline, "b_per_customer", "qty")
        found = next_audit()
        assert (found["verdict"], found["error"]["code"]) == ("different", "file-damaged"), found
        told = read_run_state(shop.folder)["audits"]
        assert {view: told[view]["verdict"] for view in VIEWS} == dict.fromkeys(VIEWS, "different")
        assert 'viewkeeper_view_differs{view="a_sales"} 1' in metrics.text()

        # Later rounds do not get used to it.
        for view in VIEWS:
            found = next_audit()
            assert (found["view"], found["verdict"]) == (view, "different"), found
        told = read_run_state(shop.folder)["audits"]
        assert {view: told[view]["verdict"] for view in VIEWS} == dict.fromkeys(VIEWS, "different")


def test_a_mark_goes_with_a_whole_comparison_and_not_with_a_sample(shop, running_spark):
    fill(shop)
    shop.write_view("a_sales", VIEWS["a_sales"])
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline() as pipeline,
        RunState(shop.folder, keeper.views) as state,
    ):
        pipeline.load()
        # A sample of one key finds next to nothing.
        auditor = Auditor(AuditSettings(every_seconds=1, keys=1), shop.folder, random.Random(7))

        def verdict() -> tuple[str, str, str]:
            found = auditor.audit(pipeline, keeper.warehouse())
            state.on_event(found)
            told = read_run_state(shop.folder)["audits"]["a_sales"]["verdict"]
            return found.verdict, found.how or "", told

        wrong = {"o_id": 12_345, "qty": 1, "name": "none", "rname": "nowhere"}
        assert verdict() == ("equal", "fingerprint and sample", "equal")
        put_a_wrong_row(pipeline, "a_sales", wrong)
        found = audit_view(pipeline, keeper.warehouse(), "a_sales").as_dict()
        state.on_event(ViewAudited.of(found | {"incarnation": 1, "seconds": 0.5}))
        auditor._remember({"a_sales!": {"incarnation": incarnation(pipeline, "a_sales")}})
        for _ in range(3):
            assert verdict() == ("different", "marked, then whole", "different")
        put_a_wrong_row(pipeline, "a_sales", wrong, count=-1)
        assert verdict() == ("equal", "marked, then whole", "equal")
        assert verdict()[1] == "fingerprint and sample"


def test_a_wrong_store_is_found(shop, running_spark):
    fill(shop)
    shop.write_view("b_per_customer", VIEWS["b_per_customer"])
    with (
        Keeper.open(shop.folder, allow_setup=True) as keeper,
        keeper.pipeline() as pipeline,
    ):
        pipeline.load()
        (store,) = (n for n in pipeline.writer.latest.views if n.endswith("groups"))
        table = keeper.warehouse().read_arrow(store, with_count=True)
        row = {name: table.column(name)[0].as_py() for name in table.column_names[:-1]}
        auditor = Auditor(AuditSettings(every_seconds=1, keys=1), shop.folder, random.Random(7))
        assert auditor.audit(pipeline, keeper.warehouse()).verdict == "equal"
        put_a_wrong_row(pipeline, store, row)
        assert audit_view(pipeline, keeper.warehouse(), "b_per_customer").stores == ("t0.groups",)


def incarnation(pipeline, view: str) -> int:
    return pipeline.writer.latest.views[view].incarnation
