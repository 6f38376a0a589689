SELECT +note AS n FROM shop.orders
