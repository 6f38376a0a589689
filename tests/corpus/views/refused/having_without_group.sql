SELECT o_id FROM shop.orders HAVING o_id > 1
