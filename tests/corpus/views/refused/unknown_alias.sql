SELECT ord.o_id FROM shop.orders o
