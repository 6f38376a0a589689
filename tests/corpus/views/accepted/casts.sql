SELECT o_id, CAST(qty AS STRING) AS text, CAST(price AS DOUBLE) AS approximate, CAST(price AS DECIMAL(12,4)) AS wide,
  CAST(price AS BIGINT) AS cut, CAST(qty AS INT) AS same, CAST('17' AS BIGINT) AS seventeen, CAST(NULL AS DATE) AS never,
  CAST(placed AS TIMESTAMP_NTZ) AS midnight, CAST(placed AS STRING) AS iso, qty::double AS d
FROM shop.orders
