SELECT o_id FROM orders
