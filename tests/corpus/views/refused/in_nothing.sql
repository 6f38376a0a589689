SELECT o_id FROM shop.orders WHERE qty IN ()
