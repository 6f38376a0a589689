SELECT year(placed) AS y, note, sum(price) AS total FROM shop.orders GROUP BY y, 2
