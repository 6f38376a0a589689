SELECT o_id FROM shop.orders WHERE qty IN (SELECT qty, o_id FROM shop.orders)
