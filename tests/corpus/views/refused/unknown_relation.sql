SELECT o_id FROM shop.order
