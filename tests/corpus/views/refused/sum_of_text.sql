SELECT sum(note) AS s FROM shop.orders
