SELECT o_id FROM shop.orders;
SELECT qty FROM shop.orders;
