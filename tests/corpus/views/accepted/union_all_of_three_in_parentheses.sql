(SELECT region_id FROM geo.regions)
UNION ALL
(SELECT region_id FROM geo.cities UNION ALL SELECT region_id + 0 FROM crm.customers)
