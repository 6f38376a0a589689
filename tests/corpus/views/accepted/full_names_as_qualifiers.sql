SELECT shop.orders.o_id, lines.sku FROM shop.orders JOIN shop.lines ON shop.orders.o_id = lines.o_id
