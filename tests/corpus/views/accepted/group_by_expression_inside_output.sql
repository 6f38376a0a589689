SELECT (qty % 2) * 10 AS tens, count(note) AS notes FROM shop.orders GROUP BY qty % 2
