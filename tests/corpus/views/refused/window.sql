SELECT o_id, rank() OVER (PARTITION BY cust_id ORDER BY qty) AS place FROM shop.orders
