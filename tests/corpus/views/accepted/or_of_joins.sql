SELECT o.o_id, c.cust_id FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id OR (o.qty = c.region_id AND NOT o.paid)
