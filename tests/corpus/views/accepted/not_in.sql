SELECT o_id FROM shop.orders WHERE cust_id NOT IN (SELECT cust_id FROM crm.customers WHERE active)
