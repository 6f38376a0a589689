SELECT o_id FROM shop.orders o
WHERE qty > 1 AND EXISTS (SELECT 1 FROM shop.lines l WHERE l.o_id = o.o_id)
