SELECT a.o_id, c.cname FROM shop.orders a JOIN shop.lines b ON a.o_id = b.o_id, geo.cities c JOIN geo.regions d USING (region_id) WHERE a.qty = region_id
