SELECT max(sum(qty)) AS m FROM shop.orders
