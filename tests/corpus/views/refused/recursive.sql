WITH RECURSIVE r AS (SELECT cust_id FROM crm.customers UNION ALL SELECT cust_id FROM r) SELECT cust_id FROM r
