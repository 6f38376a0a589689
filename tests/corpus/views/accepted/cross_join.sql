SELECT r.rname, c.name FROM geo.regions r CROSS JOIN crm.customers c WHERE r.region_id <= 2
