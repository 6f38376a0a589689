SELECT `O_ID` FROM shop.orders
