"""What sources answer becomes relations, or a broken query when it is of another schema."""

import pyarrow as pa
import pytest

from viewkeeper.algebra.types import INTEGER, STRING, Schema
from viewkeeper.errors import SourceError
from viewkeeper.live.questions.source_queries import counted

SCHEMA = Schema.of(id=INTEGER, name=STRING)


def batch(ids: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([ids, pa.array(["a"])], names=["id", "name"])


def test_rows_are_counted_once_each():
    table = counted([batch(pa.array([1], pa.int64()))] * 2, SCHEMA, "shop")
    assert table.to_pylist() == [{"id": 1, "name": "a", "_count": 1}] * 2


@pytest.mark.parametrize("wrong", [pa.decimal128(30, 0), pa.string(), pa.float64()], ids=str)
def test_an_answer_of_another_type_is_a_broken_query(wrong):
    """A column's type was changed under the question: its cause is in the feed."""
    sound, other = batch(pa.array([1], pa.int64())), batch(pa.array([1], pa.int64()).cast(wrong))
    with pytest.raises(SourceError) as caught:
        counted([sound, other], SCHEMA, "shop")
    assert (caught.value.code, caught.value.source) == ("broken-query", "shop")
    assert str(wrong) in caught.value.detail
