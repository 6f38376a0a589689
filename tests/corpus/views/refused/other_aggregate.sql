SELECT cust_id, stddev(qty) AS s FROM shop.orders GROUP BY cust_id
