-- Where customers are: a join of two databases.
-- consistency: complete
SELECT c.customer_id, c.name, r.region
FROM crm.customers c
JOIN depot.regions r ON c.region_id = r.region_id
