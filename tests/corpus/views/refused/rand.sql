SELECT o_id, rand() AS r FROM shop.orders
