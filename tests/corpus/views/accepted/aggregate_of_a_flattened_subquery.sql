SELECT s.y, sum(s.t) AS total FROM (SELECT year(placed) AS y, price * qty AS t FROM shop.orders WHERE paid) AS s GROUP BY s.y
