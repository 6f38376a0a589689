-- expect: syntax-error
SELECT id FROM geo.regions WHERE name = 'open