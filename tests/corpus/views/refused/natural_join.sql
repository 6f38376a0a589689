SELECT o_id FROM shop.orders NATURAL JOIN shop.lines
