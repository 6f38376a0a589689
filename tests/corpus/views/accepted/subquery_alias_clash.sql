SELECT o.o_id, x.line FROM (SELECT o.o_id, l.line FROM shop.orders o JOIN shop.lines l USING (o_id)) AS x JOIN shop.orders AS o ON x.o_id = o.o_id JOIN shop.lines AS x_l ON x_l.line = x.line
