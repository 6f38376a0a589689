SELECT CAST(paid AS DATE) AS d FROM shop.orders
