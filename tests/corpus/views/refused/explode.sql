SELECT o_id, explode(note) AS word FROM shop.orders
