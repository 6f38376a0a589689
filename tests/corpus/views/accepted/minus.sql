SELECT o_id FROM shop.orders MINUS SELECT o_id FROM shop.archive.orders
