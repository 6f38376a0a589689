SELECT o.o_id FROM shop.orders o, crm.customers c, geo.regions r WHERE o.qty + c.region_id = r.region_id
