SELECT o_id FROM shop.orders WHERE placed = current_date
