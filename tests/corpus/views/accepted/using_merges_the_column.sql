SELECT * FROM shop.orders JOIN shop.lines USING (o_id)
