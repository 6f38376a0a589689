-- A file in SQL beside it is a view as ever.
SELECT c.customer_id, c.name FROM crm.customers c
