-- expect: bad-header
-- protocol: hope
SELECT id FROM geo.regions