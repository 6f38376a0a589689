-- reads the shop
-- consistensy: strong
SELECT o_id FROM shop.orders
