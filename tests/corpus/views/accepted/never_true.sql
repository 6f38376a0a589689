SELECT o_id FROM shop.orders WHERE qty > 1 AND 1 > 2
