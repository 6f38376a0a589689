SELECT o_id FROM shop.orders
UNION ALL
SELECT name FROM crm.customers
