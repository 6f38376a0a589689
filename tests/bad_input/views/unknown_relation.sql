-- expect: unknown-relation
SELECT id FROM geo.nowhere