SELECT cust_id, sum(qty) AS total FROM shop.orders
GROUP BY cust_id HAVING sum(qty) > (SELECT avg(qty) FROM shop.orders)
