SELECT o_id FROM shop.orders WHERE (note IS NULL OR qty IS NOT NULL) AND NOT paid IS NULL
