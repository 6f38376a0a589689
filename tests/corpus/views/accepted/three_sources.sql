-- consistency: complete     (convergent | strong | complete)
-- protocol: sweep           (optional: chosen for the level otherwise)
SELECT o.o_id, o.qty, c.name, r.rname
FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id JOIN geo.regions r ON c.region_id = r.region_id
WHERE o.qty > 2
