SELECT o.o_id, l.o_id AS line_o_id, l.sku FROM shop.orders o JOIN shop.lines l USING (o_id) WHERE o_id < 9
