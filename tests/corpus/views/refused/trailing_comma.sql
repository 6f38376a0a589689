SELECT o_id,
  qty,
FROM shop.orders
