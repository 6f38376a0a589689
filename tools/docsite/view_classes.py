"""The table of ``docs/protocols/classes.md``: which class of views which protocol keeps, at which level.

Every class has an example, and every protocol is asked whether it takes it; a test holds the page to
that.
"""

from __future__ import annotations

from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING, Schema
from viewkeeper.protocols.choice import choice_for
from viewkeeper.protocols.registry import LIVE, Registered
from viewkeeper.sql.parser import parse_with_references
from viewkeeper.views.catalog import Catalog, CatalogRelation
from viewkeeper.views.definition import RelationName, ViewDefinition

_CATALOG = Catalog(
    tuple(
        CatalogRelation(RelationName(source, relation), schema, ("id",))
        for source, relation, schema in (
            ("s1", "r", Schema.of(id=INTEGER, a=INTEGER, n=STRING)),
            ("s1", "q", Schema.of(id=INTEGER, a=INTEGER, x=DOUBLE)),
            ("s2", "t", Schema.of(id=INTEGER, a=INTEGER, n=STRING)),
        )
    )
)
_TWO = "FROM s1.r JOIN s2.t ON r.a = t.a"
_BASE = f"SELECT r.id, r.n, t.a {_TWO}"

# Each class with the smallest view of it.
EXAMPLES = {
    "one relation": "SELECT id, n FROM s1.r WHERE a > 1",
    "join, all keys shown": f"SELECT r.id, t.id AS other {_TWO}",
    "join, keys left out": f"SELECT r.n {_TWO}",
    "join inside one source": "SELECT r.n, q.a FROM s1.r JOIN s1.q ON r.a = q.a",
    "self-join": "SELECT x.id, y.id AS other FROM s1.r x JOIN s1.r y ON x.a = y.id",
    "inequality join": "SELECT r.n FROM s1.r JOIN s2.t ON r.a < t.a",
    "UNION ALL": "SELECT id, n FROM s1.r UNION ALL SELECT id, n FROM s2.t",
    "GROUP BY with COUNT, SUM, AVG": f"SELECT r.n, count(*) AS c, sum(t.a) AS s {_TWO} GROUP BY r.n",
    "MIN, MAX": f"SELECT r.n, min(t.a) AS least {_TWO} GROUP BY r.n",
    "sums of doubles": "SELECT n, sum(x) AS s FROM s1.r JOIN s1.q ON r.a = q.a GROUP BY n",
    "DISTINCT": f"SELECT DISTINCT r.n {_TWO}",
    "outer join": "SELECT r.id, t.n FROM s1.r LEFT JOIN s2.t ON r.a = t.a",
    "EXISTS, IN, NOT EXISTS": "SELECT id FROM s1.r WHERE a NOT IN (SELECT id FROM s2.t)",
    "view over a view that joins": "SELECT id, n FROM base WHERE a > 1",
    "view over a view that groups": "SELECT count(*) AS n FROM grouped",
}
_REFERRED = {"base": _BASE, "grouped": f"SELECT r.n, count(*) AS c {_TWO} GROUP BY r.n"}


def example(name: str) -> ViewDefinition:
    """The view that stands for a class."""
    definition, _ = parse_with_references("example", EXAMPLES[name], _CATALOG, _REFERRED)
    return definition


def page() -> str:
    """The whole page, as Markdown."""
    lines = [
        "# Which protocol keeps which views",
        "",
        "Made from the program by `make reference`: every protocol was asked about an example of every",
        "class. `-- protocol: NAME` in a view's text chooses; n is the number of relations",
        "that the view joins, N the number of its sources.",
        "",
        "| protocol | level | asks of the sources |",
        "|---|---|---|",
        *(f"| `{each.name}` | {each.level} | {each.asks} |" for each in LIVE.values()),
        "",
        "The level that a view of each class reaches with each protocol; — where the protocol refuses",
        "it (`viewkeeper explain` says why). The last column is what keeps it when nothing is chosen.",
        "",
        f"| view class | {' | '.join(f'`{name}`' for name in LIVE)} | chosen |",
        f"|---|{'---|' * (len(LIVE) + 1)}",
        *map(_row, EXAMPLES),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str) -> str:
    definition = example(name)
    cells = " | ".join(_cell(each, definition) for each in LIVE.values())
    return f"| {name} | {cells} | `{choice_for(definition).protocol}` |"


def _cell(protocol: Registered, definition: ViewDefinition) -> str:
    return "—" if protocol.refusal(definition) else str(protocol.level)
