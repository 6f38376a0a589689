-- Everything that has a name, from both databases: a UNION ALL is maintained like its parts.
-- consistency: strong
SELECT 'customer' AS kind, c.customer_id AS id, c.name AS name FROM crm.customers c
UNION ALL
SELECT 'product' AS kind, p.product_id AS id, p.title AS name FROM shop.products p
