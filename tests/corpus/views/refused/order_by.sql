SELECT o_id FROM shop.orders
ORDER BY o_id DESC
LIMIT 3
