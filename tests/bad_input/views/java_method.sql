-- expect: unknown-function
SELECT reflect('java.lang.System', 'getenv') AS r FROM geo.regions