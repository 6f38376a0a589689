CREATE TABLE customers (
  customer_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  region TEXT NOT NULL,
  referred_by INTEGER REFERENCES customers
);
CREATE INDEX customers_by_referrer ON customers (referred_by);
INSERT INTO customers VALUES
  (1, 'Ada', 'north', NULL), (2, 'Grace', 'north', 1), (3, 'Edgar', 'south', 1), (4, 'Barbara', 'east', 2);
