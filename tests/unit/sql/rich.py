"""Views of every class over four small relations, as texts that DuckDB understands as Spark does."""

from __future__ import annotations

import random

from unit.sql.random_rows import contents
from viewkeeper.algebra.bag import Bag
from viewkeeper.algebra.types import DATE, INTEGER, STRING, Schema, decimal_type
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName

CATALOG = Catalog(
    (
        CatalogRelation(
            RelationName("a", "r"),
            Schema.of(
                k=INTEGER, x=INTEGER, y=INTEGER, s=STRING, d=DATE, p=decimal_type(8, 2)
            ),
            ("k",),
        ),
        CatalogRelation(
            RelationName("a", "u"), Schema.of(k=INTEGER, x=INTEGER, y=INTEGER, s=STRING), ("k",)
        ),
        CatalogRelation(
            RelationName("b", "t"),
            Schema.of(k=INTEGER, x=INTEGER, y=INTEGER, s=STRING, p=decimal_type(8, 2)),
            ("k",),
        ),
        CatalogRelation(RelationName("c", "w"), Schema.of(k=INTEGER, x=INTEGER, s=STRING), ("k",)),
    )
)  # fmt: skip


def random_contents(seed: int) -> dict[RelationName, Bag]:
    """Few rows, few values, NULLs and duplicates; now and then a relation is empty."""
    chance = random.Random(seed)
    return {
        r.name: contents(r.schema, f"{seed} {r.name}", chance.choice((0, 5, 8, 12)))
        for r in CATALOG.relations
    }


SUBQUERIES = """
SELECT g.x, g.n FROM (SELECT x, count(*) AS n FROM a.r GROUP BY x) g WHERE g.n > 1
SELECT r.k, g.total FROM a.r r JOIN (SELECT x, sum(y) AS total FROM b.t GROUP BY x) g ON r.x = g.x
SELECT g.x, h.n FROM (SELECT DISTINCT x FROM a.r) g JOIN (SELECT x, count(*) AS n FROM a.u GROUP BY x) h ON g.x = h.x
SELECT max(g.n) AS most FROM (SELECT x, count(*) AS n FROM a.r GROUP BY x) g
SELECT n, count(*) AS groups FROM (SELECT x, count(*) AS n FROM a.r GROUP BY x) g GROUP BY n
WITH g AS (SELECT x, count(*) AS n FROM a.r GROUP BY x) SELECT one.x, two.x AS z FROM g one JOIN g two ON one.n = two.n
WITH g AS (SELECT x, sum(y) AS n FROM a.r GROUP BY x), h AS (SELECT max(n) AS n FROM g) SELECT g.x FROM g JOIN h ON g.n = h.n
WITH g (c, n) AS (SELECT x, count(*) FROM a.r GROUP BY x) SELECT c, n FROM g
SELECT x, count(*) AS n FROM (SELECT x FROM a.r UNION ALL SELECT x FROM a.u) z GROUP BY x
SELECT count(*) AS n FROM (SELECT x FROM a.r UNION ALL SELECT x FROM a.u UNION ALL SELECT k FROM c.w) z
SELECT DISTINCT z.x, z.s FROM (SELECT x, s FROM a.r UNION ALL SELECT x, s FROM a.u) z WHERE z.x > 1
SELECT w.s, sum(z.y) AS total FROM (SELECT x, y FROM a.r UNION ALL SELECT x, y FROM a.u) z JOIN c.w w ON w.x = z.x GROUP BY w.s HAVING count(*) > 1
SELECT z.v, count(DISTINCT z.s) AS n FROM (SELECT x AS v, s FROM a.r UNION ALL SELECT y, s FROM b.t) z GROUP BY z.v
SELECT x FROM a.r UNION SELECT x FROM a.u
SELECT x, s FROM a.r UNION SELECT x, s FROM a.u UNION ALL SELECT x, s FROM c.w
SELECT x, s FROM a.r UNION ALL SELECT x, s FROM a.u UNION SELECT x, s FROM c.w
SELECT x, s FROM a.r INTERSECT SELECT x, s FROM a.u
SELECT x, s FROM a.r EXCEPT SELECT x, s FROM a.u
SELECT x FROM a.r EXCEPT ALL SELECT x FROM a.u
SELECT x FROM a.r INTERSECT ALL SELECT x FROM a.u
SELECT x FROM a.r UNION SELECT x FROM a.u INTERSECT SELECT x FROM b.t
SELECT x, count(*) AS n FROM a.r GROUP BY x INTERSECT SELECT x, y FROM a.u
SELECT x FROM a.r EXCEPT SELECT x FROM a.u EXCEPT SELECT x FROM b.t
SELECT z.x, z.n FROM (SELECT x, count(*) AS n FROM a.r GROUP BY x UNION ALL SELECT x, y FROM a.u) z WHERE z.n > 0
SELECT p FROM a.r UNION SELECT x FROM a.u
SELECT z.x + 1 AS next FROM (SELECT x FROM a.r EXCEPT SELECT x FROM b.t) z JOIN c.w w ON w.x = z.x
SELECT x, sum(y) + count(*) AS v, 2 * max(y) - min(y) AS spread FROM a.r GROUP BY x
SELECT x, count(DISTINCT y) AS n, count(DISTINCT s) AS m, sum(DISTINCT y) AS q FROM a.r GROUP BY x HAVING count(DISTINCT y) > 0
SELECT x FROM (SELECT DISTINCT x, s FROM a.r) z
(SELECT x FROM a.r) UNION (SELECT x FROM a.u ORDER BY x) ORDER BY x
SELECT r_keys.k, (SELECT count(*) FROM a.u r_keys WHERE r_keys.x > r.x) AS n FROM a.r JOIN b.t r_keys ON r.x = r_keys.x
SELECT rows.x, count(*) AS n FROM (SELECT x FROM a.r UNION ALL SELECT x FROM a.u) rows JOIN c.w groups ON groups.x = rows.x GROUP BY rows.x HAVING count(*) > (SELECT min(k) FROM b.t groups)
SELECT r.X, R.s FROM a.r AS R WHERE NOT EXISTS (SELECT 1 FROM b.t r WHERE r.k = R.y AND r.x = 1)
SELECT t.x FROM a.r t WHERE EXISTS (SELECT 1 FROM a.r WHERE r.x = t.y AND s = t.s)
SELECT DISTINCT n FROM (SELECT x, count(*) AS n FROM a.r GROUP BY x) z ORDER BY n
"""

OUTER_JOINS = """
SELECT r.k, t.k AS other FROM a.r r LEFT JOIN b.t t ON r.x = t.x
SELECT r.k, r.s, t.k AS other, t.s AS their FROM a.r r LEFT JOIN b.t t ON r.x = t.x AND t.y > 1 AND r.y < 3
SELECT r.x, t.x AS other FROM a.r r LEFT JOIN b.t t ON r.x < t.x AND r.y = t.y
SELECT r.k, t.k AS other FROM a.r r RIGHT JOIN b.t t ON r.x = t.x
SELECT r.k, r.x, t.k AS other FROM a.r r FULL OUTER JOIN b.t t ON r.x = t.x AND r.s = t.s
SELECT r.k, t.k AS other FROM a.r r FULL JOIN b.t t ON r.x > t.x + 1
SELECT r.k FROM a.r r LEFT JOIN b.t t ON r.x = t.x WHERE t.k IS NULL
SELECT r.k, t.k AS other, w.k AS third FROM a.r r LEFT JOIN b.t t ON r.x = t.x LEFT JOIN c.w w ON t.y = w.x
SELECT r.k, t.k AS other, w.k AS third FROM a.r r LEFT JOIN b.t t ON r.x = t.x JOIN c.w w ON coalesce(t.y, r.y) = w.x
SELECT r.k, t.k AS other, w.k AS third FROM a.r r JOIN b.t t ON r.x = t.x LEFT JOIN c.w w ON t.y = w.x
SELECT r.k, t.k AS other, w.k AS third FROM a.r r LEFT JOIN (b.t t JOIN c.w w ON t.y = w.x) ON r.x = t.x
SELECT r.k, t.k AS other, w.k AS third FROM a.r r FULL JOIN (b.t t JOIN c.w w ON t.y = w.x) ON r.x = t.x
SELECT r.k, t.k AS other, w.k AS third FROM a.r r FULL JOIN b.t t ON r.x = t.x FULL JOIN c.w w ON w.x = r.y
SELECT r.k, t.k AS other, w.k AS third FROM a.r r RIGHT JOIN b.t t ON r.x = t.x RIGHT JOIN c.w w ON w.x = t.y
SELECT r.k, t.k AS other, u.k AS mine FROM a.r r LEFT JOIN b.t t ON r.x = t.x, a.u u WHERE u.x = r.y
SELECT x, r.y, t.y AS their FROM a.r r LEFT JOIN b.t t USING (x)
SELECT x, r.y, t.y AS their FROM a.r r RIGHT JOIN b.t t USING (x)
SELECT x, r.x AS mine, t.x AS their FROM a.r r FULL JOIN b.t t USING (x)
SELECT x, r.k, t.k AS o, w.k AS p FROM a.r r FULL JOIN b.t t USING (x) FULL JOIN c.w w USING (x)
SELECT x, s, r.y FROM a.r r FULL JOIN a.u u USING (x, s) WHERE x > 0
SELECT * FROM a.u LEFT JOIN (SELECT k AS kk, p FROM b.t) z ON u.x = z.kk
SELECT w.s, count(*) AS n, count(t.k) AS partners, sum(t.y) AS total FROM c.w w LEFT JOIN b.t t ON w.x = t.x GROUP BY w.s
SELECT count(*) AS n FROM a.r r FULL JOIN b.t t ON r.x = t.x
SELECT DISTINCT r.x, t.s FROM a.r r LEFT JOIN b.t t ON r.x = t.x
SELECT r.k, g.n FROM a.r r LEFT JOIN (SELECT x, count(*) AS n FROM b.t GROUP BY x) g ON r.x = g.x
SELECT r.k, coalesce(g.n, 0) AS n FROM a.r r LEFT JOIN (SELECT x, count(*) AS n FROM b.t GROUP BY x) g ON r.x = g.x WHERE coalesce(g.n, 0) < 2
SELECT n, count(*) AS m FROM (SELECT w.k, count(t.k) AS n FROM c.w w LEFT JOIN b.t t ON w.x = t.x AND t.s <> 'a' GROUP BY w.k) z GROUP BY n
SELECT z.k, t.k AS other FROM (SELECT k, x FROM a.r UNION ALL SELECT k, x FROM a.u) z LEFT JOIN b.t t ON z.x = t.x
SELECT r.k, z.k AS other FROM a.r r LEFT JOIN (SELECT k, x FROM b.t UNION ALL SELECT k, x FROM a.u) z ON z.x = r.x
SELECT z.k, z.o, w.k AS third FROM (SELECT r.k, r.y, t.k AS o FROM a.r r LEFT JOIN b.t t ON r.x = t.x) z JOIN c.w w ON z.y = w.x
SELECT one.k, two.k AS other FROM a.r one LEFT JOIN a.r two ON one.x = two.y
SELECT r.k, t.k AS other FROM a.r r LEFT JOIN b.t t ON TRUE
SELECT r.k, t.k AS other FROM a.r r LEFT JOIN b.t t ON r.x = 1
SELECT z.k FROM (a.r r JOIN (SELECT x AS xx, s AS ss FROM b.t) t ON r.x = t.xx) AS z LEFT JOIN c.w w ON w.s = z.ss
SELECT z.ss, z.y, w.k FROM (a.r r LEFT JOIN (SELECT x AS xx, s AS ss FROM b.t) t ON r.x = t.xx) AS z LEFT JOIN c.w w ON w.s = z.ss
SELECT r.k FROM a.r r LEFT JOIN b.t t ON r.x = t.x UNION ALL SELECT k FROM c.w
SELECT r.k, r.s FROM a.r r SEMI JOIN b.t t ON r.x = t.x AND r.y < t.y
SELECT r.k, r.s FROM a.r r ANTI JOIN b.t t ON r.x = t.x
SELECT w.k, r.s FROM c.w w JOIN a.r r ON w.x = r.x ANTI JOIN b.t t ON w.k = t.k AND t.s = r.s
"""

EXISTENCE = """
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x)
SELECT r.k, r.s FROM a.r r WHERE EXISTS (SELECT * FROM b.t t WHERE t.x = r.x AND t.s = 'a') AND r.y > 0
SELECT r.k FROM a.r r WHERE NOT EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x)
SELECT r.k FROM a.r r WHERE NOT EXISTS (SELECT 1 FROM b.t t WHERE t.x > r.x AND t.y <> r.y)
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x < r.x AND t.y = r.y)
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t)
SELECT r.k FROM a.r r WHERE NOT EXISTS (SELECT 1 FROM b.t t WHERE t.x > 4)
SELECT r.k FROM a.r r WHERE NOT (NOT EXISTS (SELECT 1 FROM b.t t WHERE t.x + 1 = r.x))
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t JOIN c.w w ON t.y = w.x WHERE t.x = r.x AND w.s <> r.s)
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x) AND NOT EXISTS (SELECT 1 FROM c.w w WHERE w.x = r.x)
SELECT r.k, u.k AS other FROM a.r r JOIN a.u u ON r.y = u.y WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x AND t.k = u.k)
SELECT r.k, u.k AS other FROM a.r r JOIN a.u u ON r.y = u.y WHERE NOT EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x AND t.k = u.k)
SELECT l.k FROM a.r l WHERE EXISTS (SELECT 1 FROM a.r o WHERE o.y = l.y AND o.x <> l.x) AND NOT EXISTS (SELECT 1 FROM a.r o WHERE o.y = l.y AND o.x <> l.x AND o.s > l.s)
SELECT r.k FROM a.r r WHERE r.x IN (SELECT t.x FROM b.t t)
SELECT k FROM a.r WHERE x IN (SELECT y FROM b.t WHERE s <> 'a') AND y IN (SELECT x FROM c.w)
SELECT r.k FROM a.r r WHERE r.x NOT IN (SELECT t.x FROM b.t t)
SELECT r.k FROM a.r r WHERE r.x NOT IN (SELECT t.x FROM b.t t WHERE t.x IS NOT NULL)
SELECT r.k, r.x FROM a.r r WHERE r.x NOT IN (SELECT t.x FROM b.t t WHERE t.y = r.y)
SELECT r.k FROM a.r r WHERE r.x IN (SELECT t.x FROM b.t t WHERE t.y > r.y)
SELECT r.k FROM a.r r WHERE r.x + 1 IN (SELECT t.x + r.y FROM b.t t)
SELECT r.k FROM a.r r WHERE NOT r.x IN (SELECT x FROM b.t WHERE x > 2 UNION ALL SELECT x FROM c.w WHERE k = 1 AND x > 0)
SELECT r.k FROM a.r r WHERE r.x IN (SELECT x FROM b.t UNION SELECT y FROM a.u)
SELECT r.k FROM a.r r WHERE (r.x, r.y) IN (SELECT t.x, t.y FROM b.t t)
SELECT r.k FROM a.r r WHERE (r.x, r.y) NOT IN (SELECT t.x, t.y FROM b.t t)
SELECT r.k FROM a.r r WHERE r.x IN (SELECT x FROM b.t GROUP BY x HAVING count(*) > 1)
SELECT r.k FROM a.r r WHERE r.x NOT IN (SELECT DISTINCT x FROM b.t WHERE x IS NOT NULL GROUP BY x HAVING sum(y) > 1)
SELECT r.k FROM a.r r WHERE EXISTS (SELECT t.y FROM b.t t WHERE t.x = r.x GROUP BY t.y HAVING count(*) > 1)
SELECT r.k FROM a.r r WHERE 3 IN (SELECT x FROM b.t)
SELECT r.k FROM a.r r WHERE r.y > 2 OR EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x)
SELECT r.k FROM a.r r WHERE r.y > 2 OR r.x NOT IN (SELECT x FROM b.t WHERE k > 2)
SELECT r.k FROM a.r r WHERE r.x IN (SELECT x FROM b.t) OR r.y IN (SELECT x FROM c.w) OR r.k = 1
SELECT r.k, EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x) AS has, r.x IN (SELECT x FROM c.w) AS is_in FROM a.r r
SELECT r.k, CASE WHEN r.x NOT IN (SELECT x FROM b.t WHERE s = 'a') THEN 1 ELSE 0 END AS flag FROM a.r r
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x AND EXISTS (SELECT 1 FROM c.w w WHERE w.x = t.y))
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x AND t.y NOT IN (SELECT x FROM c.w WHERE x IS NOT NULL))
SELECT r.k FROM a.r r WHERE NOT EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x AND NOT EXISTS (SELECT 1 FROM c.w w WHERE w.x = t.y))
SELECT x, count(*) AS n FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.y = r.y) GROUP BY x
SELECT DISTINCT s FROM a.r r WHERE NOT EXISTS (SELECT 1 FROM b.t t WHERE t.y = r.y)
SELECT z.k FROM (SELECT k, x FROM a.r UNION ALL SELECT k, x FROM a.u) z WHERE z.x IN (SELECT x FROM b.t)
SELECT r.k, t.k AS other FROM a.r r LEFT JOIN b.t t ON r.x = t.x WHERE r.y NOT IN (SELECT x FROM c.w WHERE x > 1)
SELECT k FROM a.u WHERE EXISTS (SELECT 1 FROM b.t LEFT JOIN c.w ON t.x = w.x WHERE t.k = u.k AND w.k IS NULL)
SELECT k FROM (SELECT k, x FROM a.r WHERE x IN (SELECT x FROM b.t)) z WHERE z.k IN (SELECT k FROM a.u) UNION ALL SELECT k FROM a.u WHERE x NOT IN (SELECT 1 FROM c.w)
WITH big AS (SELECT x FROM b.t GROUP BY x HAVING count(*) > 1) SELECT k FROM a.r WHERE x IN (SELECT x FROM big) AND y NOT IN (SELECT x FROM big WHERE x IS NOT NULL)
"""
VALUES = """
SELECT k FROM a.r WHERE x > (SELECT avg(x) FROM b.t)
SELECT k FROM a.r WHERE x = (SELECT max(x) FROM a.r)
SELECT k, x - (SELECT min(x) FROM b.t) AS above, (SELECT count(*) FROM c.w) AS n FROM a.r
SELECT r.k FROM a.r r WHERE r.x < (SELECT max(t.x) FROM b.t t WHERE t.y = r.y)
SELECT r.k FROM a.r r WHERE 2 * r.x < 1 + (SELECT sum(t.x) FROM b.t t WHERE t.y = r.y AND t.k > 1)
SELECT r.k FROM a.r r WHERE (SELECT count(*) FROM b.t t WHERE t.y = r.y) = 0
SELECT r.k FROM a.r r WHERE (SELECT count(*) FROM b.t t WHERE t.y = r.y) < r.x
SELECT r.k, (SELECT count(*) FROM b.t t WHERE t.y = r.y) AS n, (SELECT max(t.s) FROM b.t t WHERE t.x = r.x) AS most FROM a.r r
SELECT r.k, (SELECT sum(t.p) FROM b.t t WHERE t.y > r.y) AS total FROM a.r r
SELECT r.k, (SELECT count(*) + 1 FROM b.t t WHERE t.y < r.y AND t.x <> r.x) AS place FROM a.r r
SELECT r.k FROM a.r r WHERE r.x >= (SELECT max(t.x) FROM b.t t WHERE t.y <= r.y)
SELECT r.k FROM a.r r WHERE coalesce((SELECT max(t.x) FROM b.t t WHERE t.y = r.y), -1) < r.x
SELECT r.k FROM a.r r WHERE (SELECT max(t.x) FROM b.t t WHERE t.y = r.y) IS NULL
SELECT r.k FROM a.r r WHERE r.x BETWEEN (SELECT min(t.x) FROM b.t t WHERE t.y = r.y) AND (SELECT max(x) FROM c.w)
SELECT r.k FROM a.r r, a.u u WHERE r.y = u.y AND r.x = (SELECT min(t.x) FROM b.t t, c.w w WHERE t.y = w.x AND t.k = u.k)
SELECT r.k FROM a.r r WHERE r.x IN (SELECT u.x FROM a.u u WHERE u.y > (SELECT min(t.x) FROM b.t t WHERE t.k = u.k))
SELECT x, sum(y) AS total FROM a.r GROUP BY x HAVING sum(y) > (SELECT avg(y) FROM b.t)
SELECT x, sum(y) - (SELECT min(y) FROM b.t) AS total FROM a.r GROUP BY x HAVING sum(y) > (SELECT avg(y) FROM b.t) AND count(*) > 1
SELECT count(*) AS n, (SELECT count(*) FROM b.t) AS m FROM a.r
SELECT sum(r.x * (SELECT max(x) FROM b.t)) AS total FROM a.r r
SELECT r.y, sum((SELECT count(*) FROM b.t t WHERE t.x = r.x)) AS total FROM a.r r GROUP BY r.y
WITH g AS (SELECT x, sum(y) AS total FROM a.r GROUP BY x) SELECT x FROM g WHERE total = (SELECT max(total) FROM g)
WITH most AS (SELECT max(x) AS x FROM b.t) SELECT k FROM a.r WHERE x = (SELECT x FROM most)
SELECT r.k FROM a.r r WHERE r.x > (SELECT max(t.x) FROM b.t t WHERE t.y = r.y AND r.k > 2)
SELECT r.k, (SELECT sum(t.x) + r.k FROM b.t t WHERE t.y = r.y) AS v FROM a.r r
SELECT r.k, (SELECT sum(t.x * r.x) FROM b.t t WHERE t.y = r.y) AS v FROM a.r r
SELECT r.k, (SELECT count(DISTINCT t.x) FROM b.t t WHERE t.y = r.y) AS v FROM a.r r LEFT JOIN c.w w ON w.x = r.x
SELECT DISTINCT (SELECT max(t.x) FROM b.t t WHERE t.y = r.y) AS v FROM a.r r
SELECT r.k FROM a.r r WHERE r.x <> (SELECT min(x) FROM b.t) OR r.y = (SELECT max(y) FROM b.t WHERE t.x = r.x)
SELECT z.k FROM (SELECT k, x FROM a.r UNION ALL SELECT k, x FROM a.u) z WHERE z.x > (SELECT avg(x) FROM b.t)
SELECT r.k FROM a.r r WHERE EXISTS (SELECT 1 FROM b.t t WHERE t.x = r.x AND t.y > (SELECT min(w.x) FROM c.w w WHERE w.s = t.s))
"""


def texts(block: str) -> list[str]:
    """One view per line."""
    return [line for line in block.strip().splitlines() if line]


TEXTS = texts(SUBQUERIES) + texts(OUTER_JOINS) + texts(EXISTENCE) + texts(VALUES)
