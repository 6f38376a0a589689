SELECT l.*, o.qty FROM shop.orders o JOIN shop.lines l USING (o_id)
