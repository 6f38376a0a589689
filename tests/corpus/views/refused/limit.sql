SELECT o_id FROM shop.orders LIMIT 10
