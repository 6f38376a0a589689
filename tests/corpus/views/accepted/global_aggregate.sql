SELECT count(*) AS n, sum(DISTINCT qty) AS total, avg(price) AS mean FROM shop.orders WHERE paid
