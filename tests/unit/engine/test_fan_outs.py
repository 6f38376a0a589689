from viewkeeper.engine.fan_outs import fan_outs
from viewkeeper.views.definition import RelationName

ORDERS, CUSTOMERS, REGIONS, NOTES = (
    RelationName("s", name) for name in ("orders", "customers", "regions", "notes")
)


def test_a_row_meets_as_many_rows_as_its_largest_neighbour_has_for_each():
    sizes = {ORDERS: 1_000_000, CUSTOMERS: 50_000, REGIONS: 10}
    assert fan_outs([(ORDERS, CUSTOMERS, REGIONS)], sizes) == {
        ORDERS: 1.0,
        CUSTOMERS: 20.0,
        REGIONS: 100_000.0,
    }


def test_the_view_in_which_a_row_does_most_counts():
    sizes = {ORDERS: 100, CUSTOMERS: 10, REGIONS: 5}
    views = [(CUSTOMERS, REGIONS), (ORDERS, CUSTOMERS)]
    assert fan_outs(views, sizes)[CUSTOMERS] == 10.0


def test_what_is_empty_or_unknown_is_no_reason_for_anything():
    assert fan_outs([(ORDERS, NOTES)], {ORDERS: 0}) == {ORDERS: 1.0}
    assert fan_outs([(NOTES,)], {}) == {}
