SELECT cust_id FROM shop.orders GROUP BY cust_id HAVING qty > 1
