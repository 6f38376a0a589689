SELECT o_id AS id, qty AS amount FROM shop.orders
UNION ALL
SELECT line, amount FROM shop.lines
UNION ALL
SELECT cust_id, credit FROM crm.customers
