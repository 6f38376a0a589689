SELECT cust_id, count(*) FROM shop.orders GROUP BY cust_id
