SELECT o_id, 5 AS i, -5 AS j, 5L AS l, 1.50 AS dec, -0.05 AS small, 1e3 AS d, 2D AS e, 3BD AS bd, 'it''s' AS s,
  'a\'b\\c\n\u00e9' AS esc, "double" AS dq, r'raw\n' AS raw, TRUE AS t, FALSE AS f, X'1F00' AS x,
  DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:00:00+01:00' AS ts, TIMESTAMP_NTZ '2024-02-29 12:00:00.5' AS ntz,
  CAST('NaN' AS DOUBLE) AS nan, 12345678901234567890 AS big
FROM shop.orders
