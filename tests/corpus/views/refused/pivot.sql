SELECT * FROM shop.orders PIVOT (sum(qty) FOR paid IN (true, false))
