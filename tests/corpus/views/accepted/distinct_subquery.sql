SELECT s.cust_id FROM (SELECT DISTINCT cust_id FROM shop.orders) s
