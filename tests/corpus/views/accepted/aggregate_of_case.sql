SELECT region_id, sum(CASE WHEN active THEN 1 ELSE 0 END) AS active, count(nullif(name, 'a')) AS named FROM crm.customers GROUP BY region_id
