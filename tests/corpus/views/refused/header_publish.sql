-- publish: yes
SELECT o_id FROM shop.orders
