"""What the auditor remembers: a fingerprint that does not fit is no measure, and a mark is not sampled away."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from viewkeeper.algebra.types import INTEGER, Schema
from viewkeeper.live.auditing.auditor import FILE, Auditor, AuditSettings
from viewkeeper.live.json_files import read_json, write_json
from viewkeeper.reports.run_state import RunState, read_run_state
from viewkeeper.run_events import ViewAudited
from viewkeeper.warehouse import Definition, EpochCommit, Extent, Warehouse


def test_a_fingerprint_that_does_not_fit_is_never_the_next_measure(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    with warehouse.writer() as writer:
        whole = Extent(pa.table({"id": [1, 2], "_count": [1, 1]}))
        definitions = {"v": Definition(Schema.of(id=INTEGER), "SQL")}
        writer.commit(EpochCommit(1, 0, {"v": whole}, definitions=definitions))
    auditor = Auditor(AuditSettings(), tmp_path)
    assert auditor._fingerprint_fits(warehouse, "v")
    known = read_json(tmp_path / FILE)
    # As if the rows had been others when they were measured.
    write_json(tmp_path / FILE, {"v": known["v"] | {"fingerprint": known["v"]["fingerprint"] ^ 1}})
    assert [auditor._fingerprint_fits(warehouse, "v") for _ in range(3)] == [False] * 3
    # What a flipped bit left of the file is nothing to compare with.
    write_json(tmp_path / FILE, {"v": "rotten"})
    assert auditor._fingerprint_fits(warehouse, "v")


def told(verdict: str, checked: str = "all rows", incarnation: int = 1) -> ViewAudited:
    return ViewAudited("v", verdict, incarnation, 0.5, checked=checked)


def test_a_mark_goes_with_a_whole_comparison_or_a_rebuild(tmp_path: Path) -> None:
    def verdict() -> str:
        return str(read_run_state(tmp_path)["audits"]["v"]["verdict"])

    with RunState(tmp_path, {}) as state:
        for mark_goes_with in (told("equal"), told("equal", "16 keys", incarnation=2)):
            state.on_event(told("different"))
            for lesser in (told("equal", "16 keys"), told("unknown"), told("equal", "")):
                state.on_event(lesser)
                assert verdict() == "different"
            state.on_event(mark_goes_with)
            assert verdict() == "equal"
