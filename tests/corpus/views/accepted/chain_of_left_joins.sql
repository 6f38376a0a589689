SELECT o.o_id, c.name, r.rname FROM shop.orders o
LEFT JOIN crm.customers c ON o.cust_id = c.cust_id AND c.active
LEFT JOIN geo.regions r ON c.region_id = r.region_id
