SELECT DISTINCT region_id, people > 2 AS large FROM geo.cities
