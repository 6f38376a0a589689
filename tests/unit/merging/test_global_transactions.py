"""Parts of global transactions: held back until all are here, given up when they are overdue."""

from __future__ import annotations

import random

from viewkeeper.merging.global_transactions import (
    ABANDONED_MAX,
    GlobalTransactions,
    NumberUnit,
    Overdue,
    Part,
    PartArrived,
    Tie,
    TimePassed,
    Warn,
)


class Sources:
    """Lets parts arrive: ``s1`` is the first transaction of source s, ``G/2`` ties two parts."""

    def __init__(self, overdue: Overdue = Overdue.SHOW_PARTS) -> None:
        self.together = GlobalTransactions(timeout_seconds=10, overdue=overdue)
        self.now = 0.0

    def arrive(self, name: str, tie: str = "") -> list[list[str] | str]:
        tied = Tie(tie.split("/")[0], int(tie.split("/")[1])) if tie else None
        return self._told(PartArrived(Part(name[0], name, tied), self.now))

    def wait(self, seconds: float) -> list[list[str] | str]:
        self.now += seconds
        return self._told(TimePassed(self.now))

    def _told(self, event: PartArrived | TimePassed) -> list[list[str] | str]:
        found: list[list[str] | str] = []
        for action in self.together.step(event):
            match action:
                case NumberUnit(parts):
                    found.append([part.transaction for part in parts])
                case Warn(code):
                    found.append(code)
        return found


def test_what_is_not_tied_never_waits() -> None:
    sources = Sources()
    assert sources.arrive("s1") == [["s1"]]
    assert sources.together.held == 0


def test_all_parts_go_together_and_what_follows_them_goes_after() -> None:
    sources = Sources()
    assert sources.arrive("s1", "G/2") == []
    assert sources.arrive("s2") == []
    assert sources.arrive("t1") == [["t1"]]
    assert sources.arrive("t2", "G/2") == [["s1", "t2"], ["s2"]]


def test_two_global_transactions_in_opposite_orders_form_one_unit() -> None:
    sources = Sources()
    assert sources.arrive("s1", "G/2") == []
    assert sources.arrive("t1", "H/2") == []
    assert sources.arrive("s2") == []
    assert sources.arrive("s3", "H/2") == []
    assert sources.arrive("t2", "G/2") == [["s1", "s2", "s3", "t1", "t2"]]


def test_a_complete_one_waits_behind_an_incomplete_one() -> None:
    sources = Sources()
    sources.arrive("s1", "G/2")
    sources.arrive("s2", "H/2")
    assert sources.arrive("t1", "H/2") == []
    assert sources.arrive("u1", "G/2") == [["s1", "u1"], ["s2", "t1"]]


def test_two_parts_may_come_from_one_source() -> None:
    sources = Sources()
    sources.arrive("s1", "G/3")
    sources.arrive("s2", "G/3")
    assert sources.arrive("t1", "G/3") == [["s1", "s2", "t1"]]


def test_the_larger_number_of_parts_counts() -> None:
    sources = Sources()
    sources.arrive("s1", "G/2")
    assert sources.arrive("t1", "G/3") == []
    assert sources.arrive("u1", "G/2") == [["s1", "t1", "u1"]]


def test_an_id_may_be_used_again() -> None:
    sources = Sources()
    for number in (1, 2):
        assert sources.arrive(f"s{number}", "G/2") == []
        assert sources.arrive(f"t{number}", "G/2") == [[f"s{number}", f"t{number}"]]


def test_an_overdue_one_is_shown_in_parts_with_a_warning() -> None:
    sources = Sources(Overdue.SHOW_PARTS)
    sources.arrive("s1", "G/2")
    sources.arrive("s2")
    assert sources.wait(9) == []
    assert sources.wait(1) == ["global-transaction-incomplete", ["s1"], ["s2"]]
    assert sources.wait(100) == []
    assert sources.arrive("t1", "G/2") == ["global-transaction-late-part", ["t1"]]


def test_an_overdue_one_may_also_wait_on_and_is_warned_of_once() -> None:
    sources = Sources(Overdue.KEEP_WAITING)
    sources.arrive("s1", "G/2")
    assert sources.wait(10) == ["global-transaction-incomplete"]
    assert sources.wait(100) == []
    assert sources.arrive("t1", "G/2") == [["s1", "t1"]]


def test_the_ids_that_were_given_up_are_not_kept_for_ever() -> None:
    sources = Sources()
    for number in range(ABANDONED_MAX + 1):
        sources.arrive("s", f"G{number}/2")
    sources.wait(10)
    assert sources.arrive("t", "G0/2") == []
    assert sources.arrive("t", f"G{ABANDONED_MAX}/2") == ["global-transaction-late-part"]


def test_in_any_order_of_arrival_all_parts_are_in_one_unit_and_sources_keep_their_order() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        scripts = {source: [f"{source}{n}" for n in range(5)] for source in "stu"}
        ties: dict[str, str] = {}
        for number in range(3):
            for source in rng.sample("stu", 2):
                free = [name for name in scripts[source] if name not in ties]
                ties[rng.choice(free)] = f"G{number}/2"
        sources, units = Sources(), []
        queues = {source: list(script) for source, script in scripts.items()}
        while any(queues.values()):
            source = rng.choice([s for s, queue in queues.items() if queue])
            name = queues[source].pop(0)
            units += sources.arrive(name, ties.get(name, ""))
        assert sources.together.held == 0
        flat = [name for unit in units for name in unit]
        for source, script in scripts.items():
            assert [name for name in flat if name[0] == source] == script
        for tie in set(ties.values()):
            parts = {name for name, of in ties.items() if of == tie}
            assert sum(bool(parts & set(unit)) for unit in units) == 1
