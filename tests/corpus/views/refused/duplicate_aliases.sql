SELECT o.o_id FROM shop.orders o JOIN shop.lines O ON true
