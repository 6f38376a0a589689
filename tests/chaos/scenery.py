"""The tables and views of the storm: what is written to, and what is kept of it.

`MAIN` is one group of views over three databases. Its plain copies (`…_now`) are there for the judge:
a state of them says at which cut of each source it stands, and all other views of the same state must
be the views at that very cut.
"""

from __future__ import annotations

from viewkeeper.algebra import Schema
from viewkeeper.algebra.types import DOUBLE, INTEGER, STRING
from viewkeeper.views import RelationName

SHOP, CRM, GEO = "shop", "crm", "geo"
SOURCES = (SHOP, CRM, GEO)

ORDERS = RelationName(SHOP, "orders")
NOTES = RelationName(SHOP, "notes")
ACCOUNTS = RelationName(SHOP, "accounts")
CUSTOMERS = RelationName(CRM, "customers")
PROFILES = RelationName(CRM, "profiles")
REGIONS = RelationName(GEO, "regions")
ODD = {source: RelationName(source, "odd") for source in SOURCES}
BULK = {source: RelationName(source, "bulk") for source in (SHOP, CRM)}

# Every column that a view reads, in the order of the table. What is renamed is still the same column.
SCHEMAS = {
    ORDERS: Schema.of(o_id=INTEGER, cust_id=INTEGER, qty=INTEGER),
    NOTES: Schema.of(o_id=INTEGER, note=STRING),
    ACCOUNTS: Schema.of(a_id=INTEGER, balance=INTEGER),
    CUSTOMERS: Schema.of(cust_id=INTEGER, name=STRING, region_id=INTEGER),
    PROFILES: Schema.of(p_id=INTEGER, nick=STRING, phone=STRING),
    REGIONS: Schema.of(region_id=INTEGER, rname=STRING),
    **{name: Schema.of(id=INTEGER, d=DOUBLE, t=STRING) for name in ODD.values()},
}
CREATE = {
    SHOP: (
        "CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty BIGINT)",
        "CREATE TABLE notes (o_id BIGINT, note TEXT)",
        "CREATE TABLE accounts (a_id BIGINT PRIMARY KEY, balance BIGINT)",
        "CREATE TABLE odd (id BIGINT PRIMARY KEY, d DOUBLE PRECISION, t TEXT)",
        "CREATE TABLE bulk (id BIGINT PRIMARY KEY, grp BIGINT, val BIGINT)",
        "CREATE TABLE dates (id BIGINT PRIMARY KEY, day DATE)",
    ),
    CRM: (
        "CREATE TABLE customers (cust_id BIGINT PRIMARY KEY, name VARCHAR(50), region_id BIGINT)",
        "CREATE TABLE profiles (p_id BIGINT PRIMARY KEY, nick VARCHAR(50), phone VARCHAR(50))",
        "CREATE TABLE odd (id BIGINT PRIMARY KEY, d DOUBLE, t LONGTEXT)",
        "CREATE TABLE bulk (id BIGINT PRIMARY KEY, grp BIGINT, val BIGINT)",
    ),
    GEO: (
        "CREATE TABLE regions (region_id INTEGER PRIMARY KEY, rname TEXT)",
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, d REAL, t TEXT)",
        "CREATE TABLE strict_numbers (id INTEGER PRIMARY KEY, n INTEGER)",
    ),
}
ORDERS_MAX, CUSTOMERS_MAX, REGIONS_MAX, ACCOUNTS_MAX, MONEY = 60, 12, 4, 8, 1_000
FILL = {
    SHOP: (
        "INSERT INTO orders VALUES "
        + ", ".join(f"({n}, {n % (CUSTOMERS_MAX + 2)}, {n % 5})" for n in range(ORDERS_MAX)),
        "INSERT INTO notes VALUES " + ", ".join(f"({n}, 'note {n}')" for n in range(0, 60, 4)),
        "INSERT INTO accounts VALUES "
        + ", ".join(f"({n}, {MONEY // ACCOUNTS_MAX})" for n in range(ACCOUNTS_MAX)),
        "INSERT INTO dates VALUES (1, '2026-01-01')",
    ),
    CRM: (
        "INSERT INTO customers VALUES "
        + ", ".join(f"({n}, 'c{n}', {n % REGIONS_MAX})" for n in range(CUSTOMERS_MAX)),
        "INSERT INTO profiles VALUES " + ", ".join(f"({n}, 'p{n}', '0{n}')" for n in range(6)),
    ),
    GEO: (
        "INSERT INTO regions VALUES " + ", ".join(f"({n}, 'r{n}')" for n in range(REGIONS_MAX)),
        "INSERT INTO strict_numbers VALUES (1, 1)",
    ),
}

_JOINED = (
    "FROM shop.orders o JOIN crm.customers c ON o.cust_id = c.cust_id "
    "JOIN geo.regions r ON c.region_id = r.region_id"
)
# In one group, since they share relations: they show one state together.
MAIN = {
    "orders_now": "SELECT o_id, cust_id, qty FROM shop.orders",
    "notes_now": "SELECT o_id, note FROM shop.notes",
    "customers_now": "SELECT cust_id, name, region_id FROM crm.customers",
    "regions_now": "SELECT region_id, rname FROM geo.regions",
    "sales": f"SELECT o.o_id, o.qty, c.name, r.rname {_JOINED}",
    "noted": "SELECT o.o_id, n.note FROM shop.orders o JOIN shop.notes n ON o.o_id = n.o_id",
    "regional": f"SELECT r.rname, COUNT(*) AS n, SUM(o.qty) AS qty {_JOINED} GROUP BY r.rname",
}
# Which copies say how far a source is included in a state of the main group.
PINS = {
    SHOP: (("orders_now", ORDERS), ("notes_now", NOTES)),
    CRM: (("customers_now", CUSTOMERS),),
    GEO: (("regions_now", REGIONS),),
}
# Each a group of its own, over one source.
SINGLE = {
    "bank": (
        SHOP,
        "SELECT COUNT(*) AS n, SUM(balance) AS total, MIN(balance) AS least FROM shop.accounts",
    ),
    **{f"odd_{source}": (source, f"SELECT id, d, t FROM {source}.odd") for source in SOURCES},
}
# Too large to be remembered row by row: their sources say themselves what they should be.
BULKY = {
    f"bulk_{source}": (
        source,
        f"SELECT grp, COUNT(*) AS n, SUM(val) AS s FROM {source}.bulk GROUP BY grp",
    )
    for source in BULK
}
# Its column `phone` may go; every version of the view is judged by itself.
PEOPLE = "-- dispensable: phone\nSELECT p_id, nick, phone FROM crm.profiles"
# Values that no view can hold end up here.
FATAL = {
    "dated": "SELECT id, day FROM shop.dates",
    "numbered": "SELECT id, n FROM geo.strict_numbers",
}

VIEWS: dict[str, str] = {
    **MAIN,
    **{name: text for name, (_, text) in (*SINGLE.items(), *BULKY.items())},
    "people": PEOPLE,
    **FATAL,
}
