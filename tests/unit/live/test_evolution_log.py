"""Schema changes that wait for a word, and the word."""

from __future__ import annotations

import json

import pytest

from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.engine.schema_changes import Evolution, Foreseen, foreseen
from viewkeeper.engine.view import View
from viewkeeper.errors import UsageError
from viewkeeper.live.evolution_log import APPLIED, PENDING, EvolutionLog
from viewkeeper.sources.interface import RelationSchema, SchemaChange
from viewkeeper.sql.parser import parse_view
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

SCHEMA = Schema.of(k=INTEGER)
CATALOG = Catalog((CatalogRelation(RelationName("geo", "regions"), SCHEMA, ("k",)),))
TEXT = "-- evolve: approve\nSELECT k FROM geo.regions"
VIEWS = {"v": View(parse_view("v", TEXT, CATALOG), TEXT)}


def renamed(place: int, to: str = "areas") -> Foreseen:
    before = RelationSchema("regions", SCHEMA, ("k",), "1")
    change = SchemaChange("geo", {"seq": place}, "regions", before, None, "", True, {}, to)
    return foreseen(change, VIEWS, Evolution(CATALOG))


def test_a_word_counts_for_the_same_change_at_another_place(tmp_path):
    """SQLite tells a rename behind the last row that was read, and a restart reads more."""
    note = EvolutionLog(tmp_path).told(renamed(5), PENDING)
    EvolutionLog(tmp_path).decide(note["id"], "approve")
    log = EvolutionLog(tmp_path)
    assert log.decision(renamed(9)) == "approve"
    assert log.decision(renamed(9, to="places")) is None
    assert log.told(renamed(9), APPLIED)["id"] == note["id"]
    assert [change["status"] for change in log.changes()] == [APPLIED]


def test_the_same_change_once_more_needs_a_word_of_its_own(tmp_path):
    log = EvolutionLog(tmp_path)
    note = log.told(renamed(5), PENDING)
    log.decide(note["id"], "approve")
    log.told(renamed(5), APPLIED)
    assert log.decision(renamed(20)) is None
    assert log.told(renamed(20), PENDING)["id"] != note["id"]


def test_what_is_applied_or_unknown_cannot_be_decided(tmp_path):
    log = EvolutionLog(tmp_path)
    note = log.told(renamed(5), APPLIED)
    for change, code in ((note["id"], "already-decided"), ("nothing", "unknown-change")):
        with pytest.raises(UsageError) as caught:
            log.decide(change, "approve")
        assert caught.value.code == code
    json.dumps(log.changes())
