select O.O_ID, Qty from SHOP.ORDERS as o where o.Qty > 1 and O.PAID
