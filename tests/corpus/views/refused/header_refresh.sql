-- refresh: sometimes
SELECT o_id FROM shop.orders
