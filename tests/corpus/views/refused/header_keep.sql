-- keep: shop.orders, crm.customers
SELECT o_id FROM shop.orders
