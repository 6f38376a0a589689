SELECT qty * 2 AS twice FROM shop.orders WHERE twice > 2
