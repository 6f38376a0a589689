SELECT cust_id FROM shop.orders EXCEPT ALL SELECT cust_id FROM crm.customers
