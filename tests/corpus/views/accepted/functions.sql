SELECT cust_id, upper(name) AS u, lower(name) AS l, length(name) AS n, trim(name) AS t,
  substring(name, 1, 2) AS s, substr(name, 2) AS rest, name || '-' || name AS twice, concat(name, '!') AS cry,
  abs(region_id - 3) AS away, coalesce(region_id, boss_id, 0) AS some, nullif(region_id, 2) AS not_two,
  greatest(region_id, boss_id, 1) AS most, least(credit, 1.5D) AS least_credit, nvl(name, 'nobody') AS who
FROM crm.customers
