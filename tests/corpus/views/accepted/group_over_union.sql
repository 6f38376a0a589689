SELECT u.o_id, count(*) AS n FROM (SELECT o_id FROM shop.orders UNION ALL SELECT o_id FROM shop.archive.orders) u GROUP BY u.o_id
