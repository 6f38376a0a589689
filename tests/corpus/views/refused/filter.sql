SELECT count(*) FILTER (WHERE paid) AS n FROM shop.orders
