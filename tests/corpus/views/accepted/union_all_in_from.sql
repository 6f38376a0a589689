SELECT u.o_id, u.price, c.name
FROM (SELECT o_id, cust_id, price FROM shop.orders UNION ALL SELECT o_id, cust_id, price FROM shop.archive.orders) AS u
JOIN crm.customers c ON u.cust_id = c.cust_id
WHERE u.price > 1
