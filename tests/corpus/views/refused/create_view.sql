CREATE VIEW v AS SELECT o_id FROM shop.orders
