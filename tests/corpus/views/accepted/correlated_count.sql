SELECT c.name, (SELECT count(*) FROM shop.orders o WHERE o.cust_id = c.cust_id) AS orders FROM crm.customers c
