SELECT cust_id, since, seen, year(seen) AS y, CAST(seen AS DATE) AS seen_on
FROM crm.customers
WHERE since > TIMESTAMP '2024-01-01 00:00:00+00:00' AND since < '2030-01-01 00:00:00'
  AND seen >= TIMESTAMP_NTZ '2024-01-01 12:00:00' AND seen <> '2024-06-01'
