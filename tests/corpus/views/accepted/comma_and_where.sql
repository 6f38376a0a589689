SELECT o.o_id, l.sku FROM shop.orders o, shop.lines l WHERE o.o_id = l.o_id AND l.amount >= 1.50
