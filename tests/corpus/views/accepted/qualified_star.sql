SELECT c.*, r.rname FROM geo.cities c JOIN geo.regions r ON c.region_id = r.region_id
