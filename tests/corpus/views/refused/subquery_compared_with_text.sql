SELECT o_id FROM shop.orders WHERE qty IN (SELECT name FROM crm.customers)
