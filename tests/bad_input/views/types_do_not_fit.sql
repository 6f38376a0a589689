-- expect: type-mismatch
SELECT id FROM geo.regions WHERE id > name