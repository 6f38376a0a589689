import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.errors import SourceError
from viewkeeper.sources.postgres.position import compare, lsn_number, make_position, widened
from viewkeeper.sources.postgres.xid_snapshot import XidSnapshot


@given(
    near=st.integers(3, 2**40),
    distance=st.integers(-(2**31) + 1, 2**31 - 1),
)
def test_an_xid_is_widened_right_across_every_epoch(near, distance):
    full = near + distance
    if full >= 0:
        assert widened(full & 0xFFFFFFFF, near) == full


def test_a_snapshot_sees_what_ended_before_it_and_nothing_else():
    snapshot = XidSnapshot.parsed("10:14:11,13")
    assert [xid for xid in range(8, 16) if snapshot.sees(xid)] == [8, 9, 10, 12]
    assert XidSnapshot.parsed("10:10:").sees(9)


def test_positions_compare_by_place_and_then_by_item():
    def at(lsn, item=0):
        return make_position("7", 1, lsn, item)

    assert compare(at(5), at(5), "s") == 0
    assert compare(at(5), at(5, 1), "s") == -1
    assert compare(at(6), at(5, 9), "s") == 1


def test_positions_of_other_histories_can_not_be_compared():
    for other in (make_position("8", 1, 5), make_position("7", 2, 5)):
        with pytest.raises(SourceError) as caught:
            compare(make_position("7", 1, 5), other, "s")
        assert caught.value.code == "different-history"


def test_a_log_position_is_read_from_its_text():
    assert lsn_number("16/B374D848") == 0x16B374D848
