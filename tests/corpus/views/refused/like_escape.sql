SELECT o_id FROM shop.orders WHERE note LIKE 'a!%' ESCAPE '!'
