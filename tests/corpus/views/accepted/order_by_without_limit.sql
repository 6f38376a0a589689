SELECT o_id, qty FROM shop.orders
ORDER BY qty DESC, o_id
