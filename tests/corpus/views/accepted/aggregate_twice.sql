SELECT count(*) AS a, count(*) AS b, count(*) + 1 AS c FROM shop.orders
