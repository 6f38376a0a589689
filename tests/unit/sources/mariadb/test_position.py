"""Places in the log, and when two of them can't be compared."""

import json

import pytest

from viewkeeper.errors import SourceError, UsageError
from viewkeeper.sources.mariadb.position import Place, compare, place_of


def test_files_are_ordered_by_number_and_not_by_name():
    assert compare(Place("binlog.999999", 9), Place("binlog.1000000", 4), "s") == -1
    assert compare(Place("binlog.000002", 4), Place("binlog.000001", 900), "s") == 1
    assert compare(Place("binlog.000002", 4), Place("binlog.000002", 4), "s") == 0


@pytest.mark.parametrize("other", [Place("mysql-bin.000001", 4), Place("binlog.000001", 4, born=2)])
def test_places_of_different_histories_are_not_compared(other):
    with pytest.raises(SourceError) as caught:
        compare(Place("binlog.000001", 4, born=1), other, "s")
    assert caught.value.code == "feed-gap"


def test_a_position_survives_json():
    place = Place("binlog.000007", 5_000_000_000, born=3, gtid="0-1-9")
    assert place_of(json.loads(json.dumps(place.as_position()))) == place


@pytest.mark.parametrize("position", [{}, {"file": "binlog", "offset": 4}, {"lsn": 5}])
def test_something_else_is_no_position(position):
    with pytest.raises(UsageError) as caught:
        place_of(position)
    assert caught.value.code == "bad-position"
