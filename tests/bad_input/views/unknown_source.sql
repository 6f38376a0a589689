-- expect: unknown-source
SELECT id FROM moon.regions