SELECT o.cust_id,
  o.qty + 1 AS q
FROM shop.orders o
GROUP BY o.cust_id
