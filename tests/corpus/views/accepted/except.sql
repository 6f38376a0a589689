SELECT o_id FROM shop.orders EXCEPT ALL SELECT o_id FROM shop.archive.orders
