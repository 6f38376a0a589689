-- consistency: strong
SELECT c.customer_id, c.name FROM crm.customers c
