SELECT count(DISTINCT cust_id, qty) AS n FROM shop.orders
