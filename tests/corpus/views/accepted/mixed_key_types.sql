SELECT r.rname, o.o_id FROM geo.regions r JOIN shop.orders o ON r.area = o.qty AND o.price > r.region_id
