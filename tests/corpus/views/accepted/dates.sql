SELECT o_id, year(placed) AS y, month(placed) AS m, day(placed) AS d, extract(YEAR FROM placed) AS again
FROM shop.orders
WHERE placed >= DATE '2024-01-01' AND placed < '2026-01-01'
