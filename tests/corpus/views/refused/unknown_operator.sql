SELECT qty >> 1 AS h FROM shop.orders
