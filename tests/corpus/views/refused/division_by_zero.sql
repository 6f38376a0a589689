SELECT o_id FROM shop.orders WHERE 1 / 0 = 1
