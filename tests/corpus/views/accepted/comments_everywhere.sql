-- A note for the reader: this line is prose, and so is the next one.
-- todo: nothing, really
-- Consistency: strong
-- protocol: nested_sweep
-- refresh: full
-- keep: shop.orders (it is small)

/* before */ SELECT /*+ BROADCAST(o) */ o.o_id, -- the key
  o.qty /* how many */ FROM shop.orders /* of the shop */ o -- all
WHERE -- only
  o.qty > 1 -- protocol: eca is not read here
;
