SELECT n, m FROM (SELECT n, m + 1 AS m FROM (SELECT c.name AS n, o.qty AS m FROM crm.customers c, (SELECT * FROM shop.orders WHERE paid) o WHERE c.cust_id = o.cust_id) AS i WHERE m > 0) AS j
WHERE m < 5
