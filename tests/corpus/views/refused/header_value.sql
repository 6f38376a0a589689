-- consistency: eventual
SELECT o_id FROM shop.orders
