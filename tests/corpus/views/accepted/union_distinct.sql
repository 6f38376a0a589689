SELECT o_id FROM shop.orders
UNION
SELECT o_id FROM shop.archive.orders
