SELECT o_id, qty + 1 AS plus, qty - o_id AS minus, qty * 2 AS times, qty / 2 AS half,
  qty % 3 AS rest, qty div 2 AS whole, -qty AS negative, (qty + 1) * (qty - 1) AS product, 2 - (3 - qty) AS nested
FROM shop.orders
