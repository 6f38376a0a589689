SELECT cust_id, max(price) AS qty FROM shop.orders GROUP BY cust_id HAVING sum(qty) > 3
