CREATE TABLE products (product_id INTEGER PRIMARY KEY, title TEXT NOT NULL, price INTEGER NOT NULL);
CREATE TABLE orders (
  order_id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL,
  product_id INTEGER NOT NULL REFERENCES products,
  quantity INTEGER NOT NULL
);
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_product ON orders (product_id);
INSERT INTO products VALUES (1, 'lamp', 40), (2, 'chair', 85), (3, 'desk', 310);
INSERT INTO orders VALUES (1, 1, 1, 2), (2, 1, 3, 1), (3, 2, 2, 4), (4, 3, 1, 1), (5, 4, 2, 6);
