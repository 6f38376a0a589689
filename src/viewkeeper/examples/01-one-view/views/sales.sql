-- consistency: complete
SELECT o.order_id, p.title, o.quantity * p.price AS amount
FROM shop.orders o
JOIN shop.products p ON o.product_id = p.product_id
