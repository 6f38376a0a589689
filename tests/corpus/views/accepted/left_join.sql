SELECT o.o_id, c.name
FROM shop.orders o
  LEFT JOIN crm.customers c ON o.cust_id = c.cust_id
