-- expect: not-deterministic
SELECT id, now() AS r FROM geo.regions