WITH totals AS (SELECT cust_id, sum(qty) AS total FROM shop.orders GROUP BY cust_id)
SELECT t.cust_id FROM totals t WHERE t.total = (SELECT max(total) FROM totals)
