"""Ledger entries made by hand, for tests of the pure parts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.warehouse.commits import first_entry
from viewkeeper.warehouse.datafiles import DataFile
from viewkeeper.warehouse.entries import Definition, Entry, ViewState, views_to_json
from viewkeeper.warehouse.places import Place, PlacesMaker, SourcePlaces

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
SCHEMA = Schema.of(id=INTEGER, name=STRING)


def at(seconds: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=seconds)


def state(version: int, base_txn: int = 0, *, incarnation: int = 1, since: int = 0) -> ViewState:
    return ViewState(
        version=version,
        incarnation=incarnation,
        since_txn=since,
        base_txn=base_txn,
        base_rows=10,
        base_distinct=True,
        log_rows=0,
        log_files=0,
        definition_version=1,
        definition=Definition(SCHEMA, "SELECT"),
    )


class LedgerMaker:
    """Appends entries one after another; one second lies between two."""

    def __init__(self) -> None:
        self.entries: list[Entry] = [first_entry(NOON)]

    def epoch(self, transactions: int, **views: ViewState) -> LedgerMaker:
        last = self.entries[-1]
        return self._append(
            kind="epoch",
            epoch=last.epoch + 1,
            first_txn=last.last_txn + 1,
            last_txn=last.last_txn + transactions,
            views_json=views_to_json(views),
        )

    def quiet(self, kind: str, **views: ViewState) -> LedgerMaker:
        last = self.entries[-1]
        return self._append(kind=kind, first_txn=last.last_txn + 1, views_json=views_to_json(views))

    def _append(self, **fields: object) -> LedgerMaker:
        number = len(self.entries)
        last = replace(self.entries[-1], entry=number, committed_at=at(number))
        self.entries.append(replace(last, **fields))  # type: ignore[arg-type]
        return self


def log_file(name: str, first: int, last: int, rows: int = 1) -> DataFile:
    return DataFile(name, 100 * rows, rows, first, last)


def source_places(transactions: Iterable[tuple[int, Place]]) -> SourcePlaces:
    """Of one source's transactions in their order, each with the state it shows in."""
    maker = PlacesMaker()
    for number, place in transactions:
        maker.add([number], [place])
    found = maker.made()
    assert found is not None
    return found
