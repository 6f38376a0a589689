SELECT o_id, qty FROM shop.orders
UNION ALL
SELECT o_id FROM shop.lines
