-- keep: 3
-- keep: 4
SELECT o_id FROM shop.orders
