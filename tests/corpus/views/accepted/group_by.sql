SELECT cust_id, count(*) AS n, sum(qty) AS total, avg(qty) AS mean, min(price) AS cheapest, max(placed) AS latest FROM shop.orders GROUP BY cust_id
