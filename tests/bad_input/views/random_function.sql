-- expect: not-deterministic
SELECT id, rand() AS r FROM geo.regions