SELECT o_id,
  CASE WHEN qty > 3 THEN 'many' WHEN qty > 1 THEN 'some' ELSE 'few' END AS size,
  CASE WHEN paid THEN price END AS paid_price,
  CASE WHEN paid THEN NULL ELSE 0 END AS zero_or_null
FROM shop.orders
