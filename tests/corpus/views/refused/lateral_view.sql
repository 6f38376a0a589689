SELECT o_id, word FROM shop.orders LATERAL VIEW explode(note) t AS word
