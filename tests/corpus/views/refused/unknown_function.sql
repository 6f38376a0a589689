SELECT lenght(note) AS n FROM shop.orders
