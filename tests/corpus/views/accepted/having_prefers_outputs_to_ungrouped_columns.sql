SELECT cust_id, max(qty) AS qty FROM shop.orders GROUP BY cust_id HAVING qty > 2
