SELECT o.o_id FROM shop.orders o WHERE o.qty IN (
  SELECT count(*) FROM shop.lines l WHERE l.o_id = o.o_id)
