SELECT CAST(qty AS FLOAT) AS f FROM shop.orders
