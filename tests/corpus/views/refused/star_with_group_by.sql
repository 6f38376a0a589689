SELECT * FROM shop.orders GROUP BY o_id
