SELECT o_id, coalesce(price, 0) AS a, CASE WHEN paid THEN price ELSE qty END AS b, greatest(price, qty, 1.5) AS c,
  least(qty, 2D) AS d, nullif(price, 3) AS e, nullif(qty, 2.0) AS f, CASE qty WHEN 1.0 THEN 1 ELSE 2.5 END AS g
FROM shop.orders
WHERE qty IN (1, 2.0, 3e0, 4) AND price BETWEEN 0 AND 1e9
