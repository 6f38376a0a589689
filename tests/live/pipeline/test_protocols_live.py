"""Every protocol live, on three databases at once: same view, its level by the checker, its messages."""

from __future__ import annotations

import json

import pytest

from live.pipeline.recording import Recording
from viewkeeper.cli import execute
from viewkeeper.project.keeper import Keeper
from viewkeeper.terminal import write_line
from viewkeeper.views import Level, RelationName
from witnessing.judging import copy_name, copy_text, verdict

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

JOIN = """
SELECT o.o_id, n.n_id, n.note, c.cust_id, c.name, r.region_id, r.rname
FROM shop.orders{0} o JOIN shop.notes{0} n ON n.o_id = o.o_id
JOIN crm.customers{0} c ON o.cust_id = c.cust_id
JOIN geo.regions{0} r ON c.region_id = r.region_id
"""
UNION = """
SELECT c.cust_id AS id, r.rname AS what FROM crm.customers{0} c JOIN geo.regions{0} r USING (region_id)
UNION ALL SELECT o.o_id, n.note FROM shop.orders{0} o JOIN shop.notes{0} n ON n.o_id = o.o_id
"""
ONE_SOURCE = """
SELECT o.o_id, o.qty, n.note FROM shop.orders{0} o JOIN shop.notes{0} n ON n.o_id = o.o_id
"""
GROUPED = """
SELECT r.rname, AVG(CAST(o.qty AS DOUBLE)) AS mean FROM shop.orders{0} o
JOIN crm.customers{0} c ON o.cust_id = c.cust_id JOIN geo.regions{0} r ON c.region_id = r.region_id
GROUP BY r.rname
"""
# Each group has tables of its own, so that it is as good as its own managers, and no better.
COMPLETE = {"batched_sweep", "sweep", "parallel_sweep", "simplistic", "c_strobe", "medwrap", "mre"}
STRONG = {
    "nested_sweep": JOIN,
    "strobe": JOIN,
    "ring": JOIN,
    "quiescent_ring": JOIN,
    "recompute": JOIN,
    "ring_terms": UNION,
    "eca": ONE_SOURCE,
}
TABLES = {
    "shop": (
        "CREATE TABLE orders{0} (o_id BIGINT PRIMARY KEY, cust_id BIGINT, qty BIGINT)",
        "CREATE TABLE slow{0} (id BIGINT PRIMARY KEY)",
        "CREATE TABLE notes{0} (n_id BIGINT PRIMARY KEY, o_id BIGINT, note VARCHAR(20))",
        "INSERT INTO orders{0} VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, 3, 8)",
        "INSERT INTO notes{0} VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 3, 'd'), (5, 9, 'e')",
    ),
    "crm": (
        "CREATE TABLE customers{0} (cust_id BIGINT PRIMARY KEY, name VARCHAR(20), region_id BIGINT)",
        "INSERT INTO customers{0} VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', NULL)",
    ),
    "geo": (
        "CREATE TABLE regions{0} (region_id INTEGER PRIMARY KEY, rname TEXT)",
        "INSERT INTO regions{0} VALUES (1, 'north'), (2, 'south')",
    ),
}
COLUMNS = {
    RelationName("shop", "orders"): ("o_id", "cust_id", "qty"),
    RelationName("shop", "notes"): ("n_id", "o_id", "note"),
    RelationName("crm", "customers"): ("cust_id", "name", "region_id"),
    RelationName("geo", "regions"): ("region_id", "rname"),
}
# One at a time: nothing interferes, and the messages are those of the papers' formulas.
SINGLE = (
    ("shop", "INSERT INTO notes{0} VALUES (10, 2, 'single')"),
    ("crm", "INSERT INTO customers{0} VALUES (9, 'nine', 1)"),
    ("geo", "INSERT INTO regions{0} VALUES (3, 'west')"),
)
# All at once: every protocol has to compensate for what came later.
BURST = (
    ("shop", "INSERT INTO orders{0} VALUES (5, 9, 1)"),
    ("shop", "INSERT INTO notes{0} VALUES (11, 5, 'burst')"),
    ("crm", "UPDATE customers{0} SET region_id = 3 WHERE cust_id = 1"),
    ("shop", "DELETE FROM orders{0} WHERE o_id = 2"),
    ("geo", "UPDATE regions{0} SET rname = 'far west' WHERE region_id = 3"),
    ("crm", "DELETE FROM customers{0} WHERE cust_id = 2"),
    ("shop", "UPDATE orders{0} SET cust_id = 9 WHERE o_id = 3"),
    ("geo", "DELETE FROM regions{0} WHERE region_id = 2"),
    ("crm", "INSERT INTO customers{0} VALUES (2, 'two again', 1)"),
    ("shop", "INSERT INTO orders{0} VALUES (2, 2, 2)"),
    ("shop", "UPDATE notes{0} SET o_id = 5 WHERE n_id = 4"),
)
AFTER = (
    ("crm", "UPDATE customers{0} SET name = 'after' WHERE cust_id = 9"),
    ("shop", "INSERT INTO notes{0} VALUES (12, 5, 'after')"),
    ("shop", "DELETE FROM orders{0} WHERE o_id = 1"),
    ("shop", "INSERT INTO slow{0} VALUES (2)"),
)
# Messages for the three single updates over n = 4 relations at N = 3 sources, and what the papers say.
FIGURES = {
    "batched_sweep": (3 * 6, "2(n-1) per changed relation of a batch"),
    "sweep": (3 * 6, "2(n-1) per update"),
    "parallel_sweep": (3 * 6, "2(n-1) per update"),
    "simplistic": (3 * 6, "2(Z-1) per update over Z relations"),
    "c_strobe": (3 * 6, "2(n-1) per insertion that nothing interferes with"),
    "medwrap": (2 + 3 * 4, "2(N-1) per update, and 2 for the LMQ where a source joins"),
    "mre": (2, "2 for the LMQ where a source joins; the rest is stored"),
    "nested_sweep": (3 * 6, "2(n-1) per update at least, fewer where they meet"),
    "strobe": (3 * 6, "2(n-1) per insertion"),
    # The token has 1 message to its first node. The first update goes round: N hops, an increment, and
    # the token goes on. The others meet no partner, and what has become empty is not carried on: 3 and 4.
    "ring": (1 + (3 + 2) + 3 + 4, "N hops after the token has come, and an increment"),
    "quiescent_ring": (3 * (1 + 2 * 3), "a request, and N visits from and to the warehouse"),
    # Both terms' tokens go round while one of them carries something.
    "ring_terms": (8 + 10 + 7, "as ring, for each term"),
    "eca": (1 * 2, "2 per update"),
    "recompute": (3 * 6, "2N per batch, whole relations"),
}


def test_every_protocol_keeps_its_view_at_its_level_with_the_papers_messages(
    shop, running_spark, capsys
):
    for group in ("", "_s"):
        for source, statements in TABLES.items():
            shop.run(source, *(statement.format(group) for statement in statements))
        for name, columns in copied(group).items():
            shop.write_view(copy_name(name), copy_text(name, columns))
    for name in COMPLETE:
        shop.write_view(name, f"-- protocol: {name}\n{JOIN.format('')}")
    for name, text in STRONG.items():
        header = f"-- consistency: strong\n-- protocol: {name}\n"
        shop.write_view(name, header + text.format("_s"))
    shop.write_view("recomputed", GROUPED.format("_s"))
    shop.write_view("beside", JOIN.format("_s"))
    shop.write_view("virtual", f"-- consistency: strong\n-- protocol: virtual\n{JOIN.format('')}")
    header = "-- consistency: convergent\n-- protocol: periodic\n-- every: "
    shop.write_view("periodic", f"{header}0.5 s\n{JOIN.format('')}")
    shop.write_view("hourly", f"{header}1 h\nSELECT id FROM shop.slow")
    with Keeper.open(shop.folder, allow_setup=True) as keeper:
        with keeper.pipeline() as pipeline:
            complete = {*COMPLETE, *map(copy_name, copied(""))}
            strong = {*STRONG, "recomputed", "beside", *map(copy_name, copied("_s"))}
            recordings = [Recording(pipeline, complete), Recording(pipeline, strong)]
            books = shop.witness(d for r in recordings for d in r.definitions)
            pipeline.load()
            assert {frozenset(g.scope.views) for g in pipeline.groups} == {
                frozenset(complete),
                frozenset(strong),
                frozenset({"periodic"}),
                frozenset({"hourly"}),
            }
            for source, statement in SINGLE:
                commit(shop, [(source, statement)])
                catch_up(pipeline, recordings)
            singles = {n: c.messages for n, c in pipeline.message_counts().items()}
            with pipeline.paused():
                commit(shop, BURST)
            catch_up(pipeline, recordings)
            with capsys.disabled():
                print_counts(pipeline, singles)
            assert {name: singles[name] for name in FIGURES} == {
                name: figure for name, (figure, _) in FIGURES.items()
            }
            warehouse = keeper.warehouse()
            for recording, level in zip(recordings, (Level.COMPLETE, Level.STRONG), strict=True):
                assert len(recording.arrivals) == len(SINGLE) + len(BURST)
                found = verdict(warehouse, recording.definitions, books)
                assert found.meets(level), found.problem
            # The burst was one epoch, and only the complete group shows what lies between.
            assert len(recordings[0].numbers) == len(SINGLE) + len(BURST)
            assert len(recordings[1].numbers) == len(SINGLE) + 1
            # What a periodic view has heard of waits for its hour.
            shop.run("shop", "INSERT INTO slow VALUES (1)")
            while not pipeline.group_of("hourly").intake.integrator.pending:
                pipeline.cycle(0.1)
            assert warehouse.read_arrow("hourly").num_rows == 0
        # Managers that begin anew start from what the warehouse has; nobody waits for an hour then.
        commit(shop, AFTER)
        keeper.run_until_caught_up()
        assert keeper.read("hourly").count() == 2
        audits = keeper.audit()
        assert all(audit.is_equal for audit in audits), audits
        names = (*sorted(COMPLETE), "periodic", "virtual")
        rows = {name: sorted(map(tuple, keeper.read(name).collect())) for name in names}
        assert len(set(map(tuple, rows.values()))) == 1
        assert rows["sweep"]
        assert "virtual" not in keeper.warehouse().snapshot().views
    command = [
        "query",
        "SELECT count(*) AS n FROM virtual",
        "--json",
        "--project",
        str(shop.folder),
    ]
    assert execute(command) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[len(rows["virtual"])]]
    assert execute([*command, "--as-of", "1"]) == 2
    assert "virtual-has-no-past" in capsys.readouterr().out


def copied(group: str) -> dict[RelationName, tuple[str, ...]]:
    """The relations of a group, of which the judge has copies, with their columns."""
    return {
        name._replace(relation=f"{name.relation}{group}"): columns
        for name, columns in COLUMNS.items()
    }


def commit(shop, statements) -> None:
    """Both groups' tables go through the same; each source is written by one connection at a time."""
    for source, statement in statements:
        shop.run(source, statement.format(""), statement.format("_s"))


def catch_up(pipeline, recordings) -> None:
    targets = pipeline.committed_now()
    cycle = None
    while cycle is not None or not pipeline.has_applied(targets):
        cycle = pipeline.cycle(0.2)
        for recording in recordings:
            recording.add(cycle)


def print_counts(pipeline, singles) -> None:
    """For people to compare."""
    lines = [f"{'protocol':16} {'3 updates':>9} {'all':>5} {'reads':>5} {'rows':>5}  the paper"]
    for name, counts in pipeline.message_counts().items():
        paper = FIGURES[name][1] if name in FIGURES else "as its text does not choose"
        figures = f"{counts.messages:5} {counts.reads:5} {counts.rows:5}"
        lines.append(f"{name:16} {singles[name]:9} {figures}  {paper}")
    write_line("\n" + "\n".join(lines))
