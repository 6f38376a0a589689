WITH big AS (SELECT o_id, cust_id, qty * 2 AS double_qty FROM shop.orders WHERE qty > 1),
     named AS (SELECT b.o_id, b.double_qty, c.name FROM big b JOIN crm.customers c ON b.cust_id = c.cust_id)
SELECT name, double_qty FROM named WHERE double_qty > 4
