-- refresh:
SELECT o_id FROM shop.orders
