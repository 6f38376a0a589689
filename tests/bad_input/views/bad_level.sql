-- expect: bad-header
-- consistency: perfect
SELECT id FROM geo.regions