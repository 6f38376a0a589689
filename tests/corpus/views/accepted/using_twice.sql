SELECT o_id, a.qty, b.qty AS archived, l.line
FROM shop.orders a JOIN shop.archive.orders b USING (o_id) JOIN shop.lines l USING (o_id)
