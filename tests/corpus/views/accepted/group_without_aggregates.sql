SELECT region_id FROM geo.cities GROUP BY region_id
