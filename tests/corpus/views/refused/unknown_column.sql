SELECT o_id,
       custid
FROM shop.orders
