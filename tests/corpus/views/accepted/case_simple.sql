SELECT o_id, CASE qty WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE note END AS word, if(paid, qty, -qty) AS signed FROM shop.orders
