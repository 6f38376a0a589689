-- expect: not-a-query
DELETE FROM geo.regions