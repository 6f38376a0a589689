-- A view over a view: right at the same moment as the one it reads.
-- consistency: complete
SELECT s.region, count(*) AS orders, sum(s.amount) AS amount, max(s.amount) AS largest
FROM sales s
GROUP BY s.region
