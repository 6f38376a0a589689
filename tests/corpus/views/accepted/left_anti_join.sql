SELECT o_id FROM shop.orders LEFT ANTI JOIN shop.lines USING (o_id)
