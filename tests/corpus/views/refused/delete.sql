DELETE FROM shop.orders
