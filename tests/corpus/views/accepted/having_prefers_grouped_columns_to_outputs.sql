SELECT qty AS cust_id, count(*) AS n FROM shop.orders GROUP BY shop.orders.cust_id, qty HAVING cust_id > 2
