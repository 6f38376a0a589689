SELECT o_id FROM shop.orders WHERE TRUE AND 1 = 1 AND (qty > 1 AND TRUE)
