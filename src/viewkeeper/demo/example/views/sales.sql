-- What was sold to whom and where: a join of three relations in two databases.
--
-- Every transaction of either source becomes a state of this view, none is skipped:
-- consistency: complete     (or strong, or convergent)
SELECT
  o.order_id,
  c.name,
  c.region,
  p.title,
  o.quantity,
  o.quantity * p.price AS amount
FROM shop.orders o
JOIN shop.products p ON o.product_id = p.product_id
JOIN crm.customers c ON o.customer_id = c.customer_id
WHERE o.quantity > 0
