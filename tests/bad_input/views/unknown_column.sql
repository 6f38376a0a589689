-- expect: unknown-column
SELECT nothing FROM geo.regions