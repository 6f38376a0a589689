SELECT c.region_id, count(DISTINCT o.cust_id) AS customers, sum(o.price) / 2 AS half
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
GROUP BY c.region_id
HAVING customers >= 1 AND max(o.qty) > 1 AND region_id IS NOT NULL
