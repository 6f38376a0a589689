SELECT region_id, r.rname, c.cname FROM geo.regions r FULL JOIN geo.cities c USING (region_id)
