SELECT o.o_id, c.name FROM shop.orders o, crm.customers c
WHERE (o.cust_id = c.cust_id AND o.qty > 3 AND c.active) OR (o.cust_id = c.cust_id AND o.paid)
