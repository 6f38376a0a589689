SELECT o_id
FROM shop.orders
WHERE AND qty > 1
