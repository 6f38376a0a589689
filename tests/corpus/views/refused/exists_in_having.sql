SELECT cust_id, count(*) AS n FROM shop.orders GROUP BY cust_id
HAVING EXISTS (SELECT 1 FROM crm.customers)
