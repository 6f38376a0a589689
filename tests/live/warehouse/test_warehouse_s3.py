"""On an object store the same code runs, by configuration alone, with the same fence."""

from __future__ import annotations

import pytest
from epoch_workload import Replay, check_history, check_retained, empty_epoch, epoch
from small_s3 import SmallS3

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse import Amortisation, Retention, Warehouse, consolidate, publish, vacuum


def test_a_warehouse_on_s3_commits_fences_consolidates_and_vacuums() -> None:
    with SmallS3() as store:
        warehouse = Warehouse.create("s3://bucket/some/place", store.options)
        with warehouse.writer() as writer:
            writer.commit(empty_epoch())
            for first in range(1, 21, 4):
                writer.commit(epoch(first, first + 3))
                consolidate(writer, Amortisation(fold_rows_min=20, merge_files=2))
            publish(writer)
            with pytest.raises(WarehouseError, match="warehouse-held"):
                warehouse.writer()
            warehouse.storage.remove_file(warehouse.storage.path("_lease.json"))
            with warehouse.writer() as fresh:
                with pytest.raises(WarehouseError, match="lease-lost"):
                    writer.commit(epoch(21, 22))
                fresh.commit(epoch(21, 22))
                assert vacuum(fresh, Retention(6, 0, 0)).files > 0
        check_history(warehouse)
        assert check_retained(warehouse, Replay()) == 7
        facts = store.facts()
    # Every commit was refused if it came second: the fence does not rest on looking first.
    assert facts["unguarded_commits"] == []
    assert all(key.startswith("bucket/some/") for key in facts["objects"])
