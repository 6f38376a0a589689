SELECT DISTINCT count(*) AS n FROM shop.orders GROUP BY cust_id
