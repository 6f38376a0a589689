SELECT twice FROM (SELECT o_id, qty + qty AS twice FROM shop.orders) WHERE twice > 2
