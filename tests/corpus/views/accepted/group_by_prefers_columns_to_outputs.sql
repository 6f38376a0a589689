SELECT qty % 2 AS qty, count(*) AS n FROM shop.orders GROUP BY qty
