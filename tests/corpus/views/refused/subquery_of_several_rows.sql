SELECT o_id FROM shop.orders WHERE qty = (SELECT qty FROM shop.orders WHERE o_id = 1)
