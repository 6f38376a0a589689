-- consistency: strong
-- dispensable: region
SELECT c.customer_id, c.name, c.region FROM crm.customers c
