SELECT o_id FROM shop.orders WHERE placed > '2024-02-30'
