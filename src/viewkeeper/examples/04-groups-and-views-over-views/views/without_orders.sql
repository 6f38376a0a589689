-- consistency: complete
SELECT c.customer_id, c.name
FROM crm.customers c
WHERE NOT EXISTS (SELECT 1 FROM shop.orders o WHERE o.customer_id = c.customer_id)
