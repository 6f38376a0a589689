-- expect: unknown-source
SELECT * FROM parquet.`/etc/passwd`