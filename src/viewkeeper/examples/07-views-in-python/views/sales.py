"""Views that differ in one word only are easier to write once."""

import viewkeeper

REGIONS = ("north", "south", "east")


def of_region(region: str) -> object:
    @viewkeeper.view(name=f"sales_{region}", consistency="complete")
    def sales() -> str:
        return f"""
            SELECT o.order_id, c.name, p.title, o.quantity * p.price AS amount
            FROM shop.orders o
            JOIN shop.products p ON o.product_id = p.product_id
            JOIN crm.customers c ON o.customer_id = c.customer_id
            WHERE c.region = '{region}'
        """

    return sales


north, south, east = (of_region(region) for region in REGIONS)
