"""A view whose text was changed begins in the present, whatever its source went through meanwhile."""

from __future__ import annotations

import pytest

from viewkeeper.project.keeper import Keeper

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PEOPLE = "-- dispensable: phone\nSELECT p_id, nick, phone FROM crm.profiles"


def test_a_view_that_is_written_anew_does_not_pass_old_schema_changes_again(shop, running_spark):
    shop.run(
        "crm",
        "CREATE TABLE profiles (p_id BIGINT PRIMARY KEY, nick VARCHAR(50), phone VARCHAR(50))",
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50))",
        "INSERT INTO profiles VALUES (1, 'a', '01'), (2, 'b', '02')",
    )
    shop.write_view("people", PEOPLE)
    # It has nothing to do with the other one, but reads the same source from the same place on.
    shop.write_view("names", "SELECT cust_id, name FROM crm.customers")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        keeper.run_until_caught_up()
    shop.run(
        "crm",
        "INSERT INTO customers VALUES (1, 'x')",
        "UPDATE profiles SET nick = 'c' WHERE p_id = 1",
        "ALTER TABLE profiles DROP COLUMN phone",
        "ALTER TABLE profiles ADD COLUMN phone VARCHAR(50)",
        "UPDATE profiles SET phone = CONCAT('1', p_id)",
    )
    shop.write_view("people", f"-- with new numbers\n{PEOPLE}")
    with Keeper.open(shop.folder) as keeper:
        keeper.run_until_caught_up()
        assert keeper.warehouse().read_arrow("people").to_pylist() == [
            {"p_id": 1, "nick": "c", "phone": "11"},
            {"p_id": 2, "nick": "b", "phone": "12"},
        ]
        assert all(audit.is_equal for audit in keeper.audit())
