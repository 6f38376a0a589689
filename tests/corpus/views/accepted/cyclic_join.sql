SELECT a.o_id FROM shop.orders a JOIN shop.lines b ON a.o_id = b.o_id JOIN shop.archive.orders c ON b.line = c.o_id AND c.qty = a.qty
