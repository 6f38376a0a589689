SELECT o.o_id FROM shop.orders o WHERE EXISTS (
  SELECT 1 FROM shop.lines l WHERE l.o_id = o.o_id AND NOT EXISTS (
    SELECT 1 FROM geo.regions r WHERE r.rname = l.sku AND r.region_id = o.cust_id))
