SELECT upper(c.name) AS who, count(DISTINCT l.sku) AS skus, sum(l.amount * 2) AS twice, min(o.placed) AS first, max(c.seen) AS seen, avg(l.amount) AS mean
FROM crm.customers c JOIN shop.orders o ON o.cust_id = c.cust_id JOIN shop.lines l USING (o_id)
GROUP BY upper(c.name)
HAVING count(*) > 1 OR min(l.sku) IS NULL
