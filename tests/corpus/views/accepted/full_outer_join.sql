SELECT o.o_id FROM shop.orders o FULL OUTER JOIN crm.customers c ON o.cust_id = c.cust_id
