SELECT o.o_id, o.price FROM shop.orders o
WHERE o.price > (SELECT avg(other.price) FROM shop.orders other WHERE other.cust_id = o.cust_id)
