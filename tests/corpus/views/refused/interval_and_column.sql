SELECT o_id FROM shop.orders WHERE placed + INTERVAL 1 DAY > DATE '2024-01-31'
