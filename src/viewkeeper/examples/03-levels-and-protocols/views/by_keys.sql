-- consistency: strong
-- protocol: strobe
SELECT o.order_id, o.product_id, c.customer_id, c.name, o.quantity
FROM shop.orders o
JOIN crm.customers c ON o.customer_id = c.customer_id
