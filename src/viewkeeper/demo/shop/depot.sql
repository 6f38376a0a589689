CREATE TABLE products (product_id INTEGER PRIMARY KEY, title TEXT NOT NULL, price INTEGER NOT NULL);
CREATE TABLE regions (region_id INTEGER PRIMARY KEY, region TEXT NOT NULL);
WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < $products)
INSERT INTO products SELECT n, 'product ' || n, 5 + n * 37 % 200 FROM counted;
WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < $regions)
INSERT INTO regions SELECT n, 'region ' || n FROM counted;
