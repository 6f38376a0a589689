"""Views of every class over four small relations, as texts that DuckDB understands as Spark does."""

from __future__ import annotations

import random

from unit.views.random_rows import contents
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
SELECT DISTINCT n FROM (SELECT x, count(*) AS n FROM a.r GROUP BY x) z ORDER BY n
"""


def texts(block: str) -> list[str]:
    """One view per line."""
    return [line for line in block.strip().splitlines() if line]


TEXTS = texts(SUBQUERIES)
