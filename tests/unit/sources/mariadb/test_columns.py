"""Which types hold every value of which."""

import pytest

from viewkeeper.sources.mariadb.columns import Column, holds

INT = Column("a", "integer", 4)
UNSIGNED = Column("a", "integer", 4, unsigned=True)
BIGINT = Column("a", "integer", 8)
MONEY = Column("a", "decimal", precision=10, scale=2)
NAME = Column("a", "varchar", 80, charset="utf8mb4")


@pytest.mark.parametrize(
    ("before", "after", "is_held"),
    [
        (INT, INT, True),
        (INT, BIGINT, True),
        (BIGINT, INT, False),
        (UNSIGNED, INT, False),
        (UNSIGNED, BIGINT, True),
        (INT, UNSIGNED, False),
        (BIGINT, Column("a", "decimal", precision=30), True),
        (BIGINT, Column("a", "decimal", precision=30, scale=11), False),
        (BIGINT, Column("a", "decimal", precision=30, unsigned=True), False),
        (BIGINT, NAME, False),
        (MONEY, Column("a", "decimal", precision=12, scale=4), True),
        (MONEY, Column("a", "decimal", precision=12, scale=1), False),
        (MONEY, Column("a", "decimal", precision=11, scale=4), False),
        (MONEY, Column("a", "double"), False),
        (NAME, Column("a", "varchar", 160, charset="utf8mb4"), True),
        (NAME, Column("a", "varchar", 40, charset="utf8mb4"), False),
        (NAME, Column("a", "varchar", 160, charset="latin1"), False),
    ],
)
def test_a_wider_type_holds_every_value(before, after, is_held):
    assert holds(after, before) is is_held
