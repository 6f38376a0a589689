SELECT s.sku, s.total, o.qty
FROM (SELECT l.o_id, l.sku, l.amount * 2 AS total FROM shop.lines AS l WHERE l.weight > 0) AS s
JOIN shop.orders AS o ON s.o_id = o.o_id
WHERE s.total > o.qty
