SELECT o_id FROM shop.orders WHERE qty = (SELECT 1)
