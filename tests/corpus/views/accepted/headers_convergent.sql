-- consistency: convergent
-- freshness: 30 seconds
-- publish: yes
-- evolve: ask
SELECT name FROM crm.customers
