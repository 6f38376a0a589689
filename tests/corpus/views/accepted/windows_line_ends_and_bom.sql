-- consistency: strong
-- protocol: strobe
SELECT o_id,
  qty
FROM shop.orders
WHERE qty > 1;
;
