SELECT o_id, -qty * 2 AS a, qty - -1 AS b, 1 - 2 - qty AS c, 8 / 4 / 2 AS d, qty % 3 * 2 AS e, 2 + qty * 3 - 1 AS f,
  NOT paid OR qty > 2 AND note IS NULL AS g, NOT qty = 2 AND paid AS h, - - qty AS i, (NOT qty IN (1, 2)) = paid AS j
FROM shop.orders
WHERE NOT qty > 4 AND paid OR NOT note LIKE 'a%' AND qty IS NOT NULL
