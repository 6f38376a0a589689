SELECT a.o_id FROM shop.orders a, geo.cities b JOIN geo.regions c ON a.qty = c.region_id
