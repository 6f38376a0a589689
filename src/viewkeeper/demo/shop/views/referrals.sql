-- Who brought whom: a relation joined with itself.
-- consistency: complete
SELECT c.customer_id, c.name, r.name AS referred_by
FROM crm.customers c
JOIN crm.customers r ON c.referred_by = r.customer_id
