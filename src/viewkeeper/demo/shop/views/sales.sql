-- What was sold to whom: a join of three autonomous databases.
-- consistency: complete
SELECT o.order_id, c.name, p.title, o.quantity, o.quantity * p.price AS amount
FROM shop.orders o
JOIN crm.customers c ON o.customer_id = c.customer_id
JOIN depot.products p ON o.product_id = p.product_id
