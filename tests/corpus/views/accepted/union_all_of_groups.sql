SELECT 'orders' AS kind, count(*) AS n, sum(price) AS total FROM shop.orders
UNION ALL
SELECT 'archive', count(*), sum(price) FROM shop.archive.orders
