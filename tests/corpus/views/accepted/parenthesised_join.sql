SELECT o.o_id, l.sku, c.name FROM crm.customers c JOIN (shop.orders o JOIN shop.lines l ON o.o_id = l.o_id) ON c.cust_id = o.cust_id
