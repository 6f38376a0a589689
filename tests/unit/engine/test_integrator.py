import datetime as dt

from viewkeeper.engine.integrator import Integrator, last_positions, own_unit, states_of
from viewkeeper.protocols.messages import Reflected
from viewkeeper.sources.interface import RelationChange, SourceTransaction
from viewkeeper.views.definition import RelationName

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def transaction(source: str, identity: int, rows: int = 1) -> SourceTransaction:
    change = RelationChange("r", (), tuple((n,) for n in range(rows)))
    return SourceTransaction(source, {"at": identity}, identity, NOW, (change,))


def integrator_of(*sources: str) -> Integrator:
    return Integrator(RelationName(source, "r") for source in sources)


def test_numbers_follow_the_order_of_arrival_and_each_sources_own():
    integrator = integrator_of("a", "b")
    arrivals = [integrator.arrived(transaction(s, n)) for s, n in (("a", 5), ("b", 9), ("a", 6))]
    assert [arrival.number for arrival in arrivals] == [1, 2, 3]
    assert [str(arrival.transaction) for arrival in arrivals] == ["a#1", "b#1", "a#2"]


def test_a_batch_ends_before_the_first_transaction_that_no_cut_shows_yet():
    integrator = integrator_of("a", "b")
    for source, identity in (("a", 1), ("b", 1), ("a", 2), ("b", 2)):
        integrator.arrived(transaction(source, identity))
    visible = {"a": Reflected(1), "b": None}
    batch = integrator.close_batch(visible, 100, 100)
    assert [a.number for a in batch] == [1, 2]
    assert last_positions(batch) == {"a": {"at": 1}, "b": {"at": 1}}
    assert [a.number for a in integrator.pending] == [3, 4]


def test_a_batch_keeps_its_limits_but_takes_one_transaction_however_large():
    integrator = integrator_of("a")
    for identity, rows in ((1, 50), (2, 3), (3, 3), (4, 3)):
        integrator.arrived(transaction("a", identity, rows))
    visible = {"a": Reflected(4)}
    assert len(integrator.close_batch(visible, 100, 10)) == 1
    assert len(integrator.close_batch(visible, 100, 7)) == 2
    assert len(integrator.close_batch(visible, 1, 100)) == 1
    assert not integrator.pending


def test_a_row_that_is_in_many_rows_of_a_view_counts_for_as_many():
    def batches(weights: dict[RelationName, float] | None) -> list[int]:
        integrator = integrator_of("a", "b")
        for number in range(4):
            integrator.arrived(transaction("a", number))
            integrator.arrived(transaction("b", number))
        found = []
        while integrator.pending:
            found.append(
                len(integrator.close_batch({"a": None, "b": None}, 100, 22, None, weights))
            )
        return found

    assert batches(None) == [8]
    assert batches({RelationName("a", "r"): 10.0}) == [4, 4]


def test_the_newest_number_of_a_source_is_known():
    integrator = integrator_of("a", "b")
    integrator.arrived(transaction("a", 7))
    integrator.arrived(transaction("a", 8))
    assert (integrator.newest("a"), integrator.newest("b")) == (2, 0)


def test_what_concerns_no_view_of_the_group_is_left_out():
    integrator = integrator_of("a")
    other = RelationChange("other", (), ((1,),))
    empty = RelationChange("r", (), ())
    mine = RelationChange("r", ((1,),), ())
    assert integrator.arrived(SourceTransaction("a", {"at": 1}, 1, NOW, (other, empty))) is None
    arrival = integrator.arrived(SourceTransaction("a", {"at": 2}, 2, NOW, (other, mine)))
    assert (arrival.number, arrival.rows) == (1, 1)
    assert arrival.transaction.changes == ((RelationName("a", "r"), mine),)


def blocks_of(integrator: Integrator, size: int = 100) -> list[list[int]]:
    """The batches that can be closed, and the numbers in each."""
    found = []
    while batch := integrator.close_batch({"a": None}, size, 1_000):
        found.append([arrival.number for arrival in batch])
    return found


def in_blocks(block: int, units: str) -> Integrator:
    """Transactions with these units, a blank for none."""
    integrator = Integrator([RelationName("a", "r")], block)
    objects = {letter: object() for letter in units if letter != " "}
    for identity, letter in enumerate(units, 1):
        integrator.arrived(transaction("a", identity), objects.get(letter))
    return integrator


def test_a_block_is_neither_divided_nor_shown_before_it_is_full():
    integrator = in_blocks(3, " " * 7)
    assert blocks_of(integrator, size=1) == [[1, 2, 3], [4, 5, 6]]
    assert integrator.waits_for_block
    integrator.end_block()
    assert blocks_of(integrator) == [[7]]


def test_all_transactions_of_a_block_have_one_state():
    batch = in_blocks(2, " " * 4).close_batch({"a": None}, 100, 1_000)
    assert states_of(batch) == [0, 0, 1, 1]


def test_a_unit_makes_its_block_longer_and_is_known_when_it_is_numbered_again():
    integrator = in_blocks(2, " uuu  ")
    batch = integrator.close_batch({"a": None}, 100, 1_000)
    assert states_of(batch) == [0, 0, 0, 0, 1, 1]
    first, *rest = (own_unit(arrival) for arrival in batch)
    assert first is None
    assert [unit is rest[0] for unit in rest] == [True, True, True, False, False]
