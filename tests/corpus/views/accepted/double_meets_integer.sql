SELECT c.cust_id, o.o_id FROM crm.customers c JOIN shop.orders o ON c.credit = o.qty
