SELECT o_id FROM shop.orders WHERE cust_id IN (SELECT cust_id FROM crm.customers)
