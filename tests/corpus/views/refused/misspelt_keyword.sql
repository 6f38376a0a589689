SELECT o_id FORM shop.orders
