SELECT o_id FROM shop.orders RIGHT JOIN shop.lines USING (o_id)
