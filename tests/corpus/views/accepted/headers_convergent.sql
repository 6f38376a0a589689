-- consistency: convergent
-- freshness: 30 seconds
-- publish: table
-- evolve: ask
SELECT name FROM crm.customers
