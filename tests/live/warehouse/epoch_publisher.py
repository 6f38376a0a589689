"""A process that publishes the workload until it is killed: ``epoch_publisher.py FOLDER MODE LAST``.

``background``: commits as fast as it can while housekeeping runs beside it, as in production.
``in-turn``: housekeeping between the commits, so that every failpoint is passed at a known moment.
Prints ``ready`` once it holds the lease.
"""

from __future__ import annotations

import random
import sys

from epoch_workload import empty_epoch, epoch

from viewkeeper.warehouse import (
    Amortisation,
    Background,
    Housekeeping,
    Retention,
    Warehouse,
    Writer,
    consolidate,
    publish,
    vacuum,
)
from viewkeeper.warehouse.trimming import trim

AMORTISATION = Amortisation(fold_ratio=0.5, fold_rows_min=60, merge_files=4)
RETENTION = Retention(transactions=100, seconds=0, grace_seconds=10)
HOUSEKEEPING = Housekeeping(
    AMORTISATION,
    RETENTION,
    consolidate_seconds=0.05,
    publish_seconds=0.1,
    trim_seconds=0.1,
    vacuum_seconds=0.1,
)


def advance(writer: Writer, last: int, chance: random.Random) -> int:
    """Commit the next epoch, at most up to ``last``; the last number committed."""
    latest = writer.latest
    if not latest.views:
        return writer.commit(empty_epoch()).last_txn
    first = latest.last_txn + 1
    return writer.commit(epoch(first, min(last, first + chance.randrange(6)))).last_txn


def in_turn(writer: Writer, last: int, chance: random.Random) -> None:
    while advance(writer, last, chance) < last:
        consolidate(writer, AMORTISATION)
        publish(writer)
        trim(writer, 0)
        vacuum(writer, Retention(transactions=20, seconds=0, grace_seconds=0))


def main(folder: str, mode: str, last: int) -> None:
    chance = random.Random()
    with Warehouse.open(folder).writer() as writer:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        if mode == "in-turn":
            in_turn(writer, last, chance)
            return
        background = Background(writer, HOUSEKEEPING)
        while advance(writer, last, chance) < last:
            pass
        background.close()
        if background.last_error is not None:
            raise background.last_error


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
