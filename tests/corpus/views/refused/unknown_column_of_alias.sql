SELECT o.name FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id
