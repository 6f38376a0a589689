-- expect: several-statements
SELECT id FROM geo.regions; DROP TABLE geo.regions