SELECT o_id, price FROM shop.orders WHERE qty > 1
UNION ALL
SELECT o_id, price FROM shop.archive.orders
