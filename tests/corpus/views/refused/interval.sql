SELECT o_id FROM shop.orders WHERE placed > DATE '2024-01-01' - INTERVAL 1 DAY
