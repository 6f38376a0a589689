"""Two views of two groups: what pages and API show of one number is one cut of the source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from dashboard.serving import ask
from unit.warehouse.entries_for_tests import source_places
from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.warehouse import Changes, Definition, EpochCommit, Extent, Writer
from viewkeeper.warehouse.places import Place, Places

SCHEMA = Schema.of(id=INTEGER)


def at(place: int) -> dict[str, Any]:
    return {"depot": {"seq": place, "history": "h"}}


def extent() -> Extent:
    return Extent(pa.table({"id": pa.array([], pa.int64()), "_count": pa.array([], pa.int64())}))


def commit(writer: Writer, view: str, *places: int, upto: int | None = None) -> None:
    """Each place is a transaction that puts its number into the view."""
    first = writer.latest.last_txn + 1
    last = first + len(places) - 1
    numbers = list(range(first, last + 1))
    rows = pa.table({"id": list(places), "_count": [1] * len(places), "_txn": numbers})
    told = source_places([(n, Place("h", (place, 0))) for n, place in enumerate(places)])
    writer.commit(
        EpochCommit(
            first,
            last,
            {view: Changes(rows)},
            cuts={view: at(places[-1] if upto is None else upto)},
            places=Places(frozenset({view}), {"depot": told}).encoded(),
        )
    )


@pytest.fixture
def writer(project: Any) -> Any:
    with project.warehouse.writer() as writer:
        views = ("orders", "invoices")
        writer.commit(
            EpochCommit(
                1,
                0,
                {view: extent() for view in views},
                definitions={view: Definition(SCHEMA) for view in views},
                cuts={view: at(0) for view in views},
            )
        )
        yield writer


def shown(server: Any, view: str, query: str) -> tuple[list[int], int]:
    page = ask(server, f"/api/views/{view}/rows?{query}").document
    return [row["values"][0] for row in page["rows"]], page["shows"]


def test_pages_at_one_number_belong_together(server: Any, writer: Writer) -> None:
    commit(writer, "invoices", 2, 4, 6)
    commit(writer, "orders", 1, 3)
    found = [
        (shown(server, "orders", f"as_of={txn}"), shown(server, "invoices", f"as_of={txn}"))
        for txn in range(6)
    ]
    assert found == [
        (([], 0), ([], 0)),
        (([], 1), ([], 0)),
        (([], 2), ([], 0)),
        (([], 3), ([], 0)),
        (([1], 4), ([2], 1)),
        (([1, 3], 5), ([2], 1)),
    ]
    difference = ask(server, "/api/views/invoices/difference?before=3&after=5").document
    assert [row["values"] for row in difference["rows"]] == [[2]]


def test_the_overview_counts_rows_that_belong_together(server: Any, writer: Writer) -> None:
    commit(writer, "invoices", 2, 4, 6)
    commit(writer, "orders", 1, 3)
    views = ask(server, "/api/overview").document["views"]
    assert (views["orders"]["rows"], views["invoices"]["rows"]) == (2, 1)
    commit(writer, "orders", 5, upto=9)
    views = ask(server, "/api/overview").document["views"]
    assert (views["orders"]["rows"], views["invoices"]["rows"]) == (3, 3)


def test_a_view_that_stands_still_does_not_hold_the_others_back(
    server: Any, writer: Writer, monkeypatch: Any
) -> None:
    """It waits for a decision, or its source is away."""
    monkeypatch.setattr("viewkeeper.warehouse.warehouse.OVERVIEW_ENTRIES_MAX", 8)
    for place in range(1, 13):
        commit(writer, "invoices", place)
    page = ask(server, "/api/views/invoices/rows").document
    assert (page["total"], page["shows"], page["apart"]) == (12, 12, ["orders"])
    page = ask(server, "/api/views/orders/rows").document
    assert (page["total"], page["apart"]) == (0, ["orders"])
