SELECT o_id FROM shop.orders OFFSET 10
