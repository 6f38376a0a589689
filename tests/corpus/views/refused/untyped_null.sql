SELECT o_id, NULL AS nothing FROM shop.orders
