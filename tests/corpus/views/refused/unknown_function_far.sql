SELECT soundex(note) AS n FROM shop.orders
