-- protocol: sweeep
SELECT o_id FROM shop.orders
