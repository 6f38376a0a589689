SELECT orders.o_id, archive.orders.qty FROM shop.archive.orders WHERE orders.price > 1
