SELECT o_id FROM shop.orders
WHERE qty BETWEEN 1 AND 4 AND qty NOT BETWEEN 3 AND 3
  AND note IN ('a', 'b', 'ab', NULL) AND o_id NOT IN (99, 98) AND (note LIKE '%a%' OR note NOT LIKE '_')
