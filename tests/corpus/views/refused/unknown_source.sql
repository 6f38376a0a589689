SELECT o_id FROM shops.orders
