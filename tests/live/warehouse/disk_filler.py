"""Fills a small disk with epochs until it is full, makes room, and goes on.

Run by the test inside a mount of its own: ``disk_filler.py FOLDER SIZE``. Prints what it found as
JSON; exits with a traceback if anything was lost.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from epoch_workload import Replay, check_history, check_retained, check_state, empty_epoch, epoch

from viewkeeper.errors import WarehouseError
from viewkeeper.warehouse import Amortisation, Retention, Warehouse, consolidate, vacuum

TRANSACTIONS_PER_EPOCH = 200


def main(folder: Path, ballast_size: int) -> None:
    ballast = folder / "ballast"
    ballast.write_bytes(b"\0" * ballast_size)
    warehouse = Warehouse.create(folder / "w")
    with warehouse.writer() as writer:
        writer.commit(empty_epoch())
        errors = []
        while (
            len(errors) < 5
        ):  # a full disk may leave room for a small file but not for a large one
            first = writer.latest.last_txn + 1
            try:
                writer.commit(epoch(first, first + TRANSACTIONS_PER_EPOCH - 1))
                if first % (5 * TRANSACTIONS_PER_EPOCH) == 1:
                    consolidate(writer, Amortisation(fold_rows_min=500, merge_files=3))
            except WarehouseError as error:
                errors.append(error.code)
                check_state(warehouse, Replay())
        when_full = check_state(warehouse, Replay())
        ballast.unlink()
        vacuum(writer, Retention(transactions=300, seconds=0, grace_seconds=0))
        for _ in range(3):
            first = writer.latest.last_txn + 1
            writer.commit(epoch(first, first + 9))
    check_history(warehouse)
    compared = check_retained(warehouse, Replay(), step=15)
    found = {"errors": errors, "when_full": when_full, "compared": compared}
    sys.stdout.write(json.dumps(found | {"last_txn": warehouse.latest().last_txn}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
