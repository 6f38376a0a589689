from __future__ import annotations

import pytest

from viewkeeper.sources.mariadb.binlog import length_coded
from viewkeeper.sources.mariadb.prepared import _length_coded


@pytest.mark.parametrize("size", [0, 250, 251, 65_535, 65_536, (1 << 24) - 1, 1 << 24])
def test_a_parameter_is_as_long_as_it_says(size: int) -> None:
    coded = _length_coded(bytes(size))
    assert length_coded(coded, 0) == (size, len(coded) - size)
