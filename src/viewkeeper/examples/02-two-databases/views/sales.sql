-- consistency: complete
SELECT o.order_id, c.name, c.region, p.title, o.quantity * p.price AS amount
FROM shop.orders o
JOIN shop.products p ON o.product_id = p.product_id
JOIN crm.customers c ON o.customer_id = c.customer_id
