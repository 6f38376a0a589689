SELECT o_id FROM shop.orders WHERE note IS DISTINCT FROM 'b' AND qty != 3
