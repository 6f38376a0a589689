SELECT name FROM shop.orders o RIGHT SEMI JOIN crm.customers c ON o.cust_id = c.cust_id
