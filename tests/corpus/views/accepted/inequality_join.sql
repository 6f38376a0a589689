SELECT a.city_id, b.city_id AS larger FROM geo.cities a JOIN geo.cities b ON a.people < b.people AND a.region_id = b.region_id
