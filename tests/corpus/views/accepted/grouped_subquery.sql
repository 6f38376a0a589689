SELECT s.n FROM (SELECT cust_id, count(*) AS n FROM shop.orders GROUP BY cust_id) s JOIN crm.customers c USING (cust_id)
