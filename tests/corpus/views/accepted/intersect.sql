SELECT o_id FROM shop.orders INTERSECT SELECT o_id FROM shop.archive.orders
