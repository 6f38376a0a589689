SELECT x.o_id, x.qty, x.sku, c.name FROM (shop.orders o JOIN shop.lines l USING (o_id)) AS x JOIN crm.customers c ON x.cust_id = c.cust_id
