SELECT o_id, count(*) AS n FROM shop.orders GROUP BY 3
