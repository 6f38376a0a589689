SELECT o_id, qty * 2 FROM shop.orders
