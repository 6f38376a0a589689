SELECT o.o_id FROM shop.orders o JOIN shop.lines l ON
WHERE o.qty > 1
