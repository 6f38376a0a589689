CREATE TABLE customers (
  customer_id bigint PRIMARY KEY,
  name text NOT NULL,
  region_id bigint NOT NULL,
  referred_by bigint
);
CREATE INDEX ON customers (region_id);
CREATE INDEX ON customers (referred_by);
INSERT INTO customers
  SELECT n, 'customer ' || n, 1 + n % $regions, CASE WHEN n > 100 THEN 1 + n % 100 END
  FROM generate_series(1, $customers) n;
