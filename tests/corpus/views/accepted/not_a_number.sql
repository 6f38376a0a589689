SELECT cust_id, credit > 1e300 AS huge, credit = CAST('NaN' AS DOUBLE) AS nan, credit <=> NULL AS none, greatest(credit, 0D) AS most
FROM crm.customers WHERE NOT credit < 1
