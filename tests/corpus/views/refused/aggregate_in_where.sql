SELECT cust_id FROM shop.orders WHERE sum(qty) > 1 GROUP BY cust_id
