SELECT o_id, price * 1.10 AS gross, price + qty AS mixed, price / 3 AS third, price - 0.05 AS less,
  price % 7 AS rest, -price AS negative, price * weight AS heavy
FROM shop.orders JOIN shop.lines USING (o_id)
