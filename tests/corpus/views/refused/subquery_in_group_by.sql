SELECT count(*) AS n FROM shop.orders GROUP BY (SELECT max(qty) FROM shop.orders)
