SELECT o.o_id FROM shop.orders o
WHERE EXISTS (SELECT 1 FROM shop.orders later WHERE later.cust_id = o.cust_id AND later.placed > o.placed)
