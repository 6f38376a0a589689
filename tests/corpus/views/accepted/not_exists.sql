SELECT c.cust_id, c.name FROM crm.customers c
WHERE NOT EXISTS (SELECT 1 FROM shop.orders o WHERE o.cust_id = c.cust_id AND o.qty > 2)
