SELECT cust_id, count(*) AS n FROM shop.orders GROUP BY ROLLUP (cust_id)
