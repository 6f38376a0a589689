SELECT o_id, (SELECT max(qty) FROM shop.orders) AS top FROM shop.orders
