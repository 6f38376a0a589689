SELECT qty + note AS x FROM shop.orders
