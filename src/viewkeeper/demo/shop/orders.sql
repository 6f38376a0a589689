CREATE TABLE orders (
  order_id bigint PRIMARY KEY,
  customer_id bigint NOT NULL,
  product_id bigint NOT NULL,
  quantity bigint NOT NULL
);
CREATE INDEX ON orders (customer_id);
CREATE INDEX ON orders (product_id);
INSERT INTO orders
  SELECT n, 1 + n * 7919 % $customers, 1 + n * 104729 % $products, 1 + n % 5 FROM generate_series(1, $orders) n;
