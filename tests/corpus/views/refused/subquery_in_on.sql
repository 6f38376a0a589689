SELECT o.o_id FROM shop.orders o JOIN crm.customers c ON o.cust_id = (SELECT max(cust_id) FROM crm.customers)
