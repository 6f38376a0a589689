SELECT region_id, flag FROM geo.regions WHERE flag <> X'00' OR flag IS NULL
