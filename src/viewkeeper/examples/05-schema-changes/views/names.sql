-- consistency: strong
-- dispensable: region
-- evolve: approve
SELECT c.name, c.region FROM crm.customers c
