WITH everything AS (SELECT o_id, qty FROM shop.orders UNION ALL SELECT o_id, qty FROM shop.archive.orders)
SELECT a.o_id, b.qty FROM everything a JOIN everything b ON a.o_id = b.o_id AND a.qty < b.qty
