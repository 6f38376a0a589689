SELECT s.o_id FROM (SELECT o_id FROM shop.orders LIMIT 3) s
