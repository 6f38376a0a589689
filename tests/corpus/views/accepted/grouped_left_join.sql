SELECT n, count(*) AS customers
FROM (SELECT c.cust_id, count(o.o_id) AS n FROM crm.customers c LEFT JOIN shop.orders o ON c.cust_id = o.cust_id GROUP BY c.cust_id) z
GROUP BY n
