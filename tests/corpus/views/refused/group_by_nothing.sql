SELECT count(*) AS n FROM shop.orders GROUP BY
