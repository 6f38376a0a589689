SELECT count(*) AS n, sum(qty) AS total FROM shop.orders WHERE 1 = 0
