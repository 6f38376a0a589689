SELECT o.o_id FROM shop.orders o
WHERE o.paid OR EXISTS (SELECT 1 FROM shop.lines l WHERE l.o_id = o.o_id AND l.weight > 2)
