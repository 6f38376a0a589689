"""What a reader may ask: attempts at everything but the views are refused, ordinary queries are answered."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from viewkeeper.algebra.types import DATE, INTEGER, STRING, Field, Schema
from viewkeeper.cli import execute
from viewkeeper.errors import UsageError, ViewkeeperError
from viewkeeper.project.config import read_project
from viewkeeper.project.keeper import Keeper
from viewkeeper.spark.gate import parsed_query
from viewkeeper.spark.plan_nodes import PlanReader
from viewkeeper.spark.query_functions import FUNCTIONS, TABLE_FUNCTIONS
from viewkeeper.warehouse import Definition, EpochCommit, Extent, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from viewkeeper.spark.session import Spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SCHEMA = Schema((Field("id", INTEGER), Field("name", STRING), Field("day", DATE)))
REFUSED = {"not-a-query", "query-not-allowed", "query-syntax", "query-too-deep", "query-too-long"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two views, and beside the warehouse a file with a secret and a folder that must stay empty."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "viewkeeper.toml").write_text('[warehouse]\npath = "w"\n')
    (folder / "secret.txt").write_text("the-secret\n")
    (folder / "out").mkdir()
    days = pa.array([18_000 + n for n in range(5)], pa.int32()).cast(pa.date32())
    rows = pa.table({"id": range(5), "name": list("abcde"), "day": days, "_count": [1, 1, 2, 1, 1]})
    with Warehouse.create(folder / "w").writer() as writer:
        defined = Definition(SCHEMA, "SQL")
        views = {"v": Extent(rows), "other": Extent(rows)}
        writer.commit(EpochCommit(1, 0, views, definitions={"v": defined, "other": defined}))
    return folder


@pytest.fixture(scope="module")
def keeper(project: Path, running_spark: Spark) -> Iterator[Keeper]:
    with Keeper(read_project(project)) as opened:
        yield opened


def everything_in(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def asked(project: Path, sql: str, *words: str) -> tuple[int, dict]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = execute(["query", "--project", str(project), "--json", *words, "--", sql])
    return code, json.loads(out.getvalue())


# {here}: the project's folder.
ATTEMPTS = """
SELECT TRANSFORM(id) USING 'touch {here}/out/t; cat' AS (x STRING) FROM v
FROM v SELECT TRANSFORM(*) USING 'cat {here}/secret.txt' AS (x STRING)
FROM v MAP id USING 'cat' AS x
FROM v REDUCE id USING 'cat' AS x
SELECT * FROM text.`{here}/secret.txt`
SELECT * FROM csv.`{here}/secret.txt`
SELECT * FROM json.`{here}/secret.txt`
SELECT * FROM binaryFile.`{here}/secret.txt`
SELECT * FROM parquet.`{here}/w/views/v`
SELECT * FROM `text`.`file:{here}/secret.txt`
SELECT * FROM IDENTIFIER('text.`{here}/secret.txt`')
TABLE text.`{here}/secret.txt`
SELECT (SELECT max(value) FROM text.`{here}/secret.txt`) FROM v
SELECT * FROM v WHERE name IN (SELECT value FROM text.`{here}/secret.txt`)
SELECT * FROM v WHERE EXISTS (SELECT 1 FROM text.`{here}/secret.txt`)
WITH x AS (SELECT * FROM text.`{here}/secret.txt`) SELECT * FROM x
SELECT * FROM v, LATERAL (SELECT * FROM text.`{here}/secret.txt`)
SELECT id FROM v UNION ALL SELECT value FROM text.`{here}/secret.txt`
SELECT reflect('java.lang.System', 'getenv', 'HOME')
SELECT java_method('java.nio.file.Files', 'delete', 'x') FROM v
SELECT try_reflect('java.lang.System', 'getProperty', 'user.dir')
SELECT id FROM v ORDER BY reflect('java.lang.System', 'getenv', 'HOME')
SELECT id FROM v LIMIT length(reflect('java.lang.System', 'getenv', 'HOME'))
SELECT count(*) FILTER (WHERE reflect('java.lang.System', 'getenv', 'HOME') = 'x') FROM v
SELECT sum(id) OVER (PARTITION BY reflect('java.lang.System', 'getenv', 'HOME')) FROM v
SELECT transform(array(1), x -> java_method('java.lang.System', 'getenv', 'HOME'))
SELECT CASE WHEN true THEN reflect('java.lang.System', 'getenv', 'HOME') END
SELECT nvl(reflect('java.lang.System', 'getenv', 'HOME'), 'x')
SELECT * FROM VALUES (reflect('java.lang.System', 'getenv', 'HOME'))
SELECT * FROM v TABLESAMPLE (BUCKET 1 OUT OF 2 ON reflect('java.lang.System', 'getenv', 'HOME'))
SELECT * FROM range(length(reflect('java.lang.System', 'getenv', 'HOME')))
SELECT system.builtin.reflect('java.lang.System', 'getenv', 'HOME')
SELECT x FROM v LATERAL VIEW explode(array(reflect('java.lang.System', 'getenv', 'HOME'))) t AS x
FROM v INSERT OVERWRITE DIRECTORY '{here}/w/views/v' USING parquet SELECT *
FROM v INSERT OVERWRITE LOCAL DIRECTORY '{here}/out' USING csv SELECT *
INSERT OVERWRITE DIRECTORY '{here}/out' USING csv SELECT * FROM v
WITH x AS (SELECT 1) INSERT OVERWRITE DIRECTORY '{here}/out' USING csv SELECT * FROM x
FROM v INSERT INTO other SELECT * INSERT INTO v SELECT *
WITH x AS (SELECT 1) INSERT INTO v SELECT * FROM x
CREATE TABLE t USING csv LOCATION '{here}/out' AS SELECT * FROM v
CREATE TEMPORARY VIEW w USING text OPTIONS (path '{here}/secret.txt')
CREATE FUNCTION f AS 'x.Y' USING JAR '{here}/out/x.jar'
DROP VIEW v
CACHE TABLE v
ADD JAR '{here}/secret.txt'
LIST FILES
SET spark.sql.ansi.enabled=false
SET
RESET
DECLARE VARIABLE x = 1
EXECUTE IMMEDIATE 'SELECT * FROM text.`{here}/secret.txt`'
BEGIN SELECT * FROM text.`{here}/secret.txt`; END
EXPLAIN SELECT * FROM v
DESCRIBE v
SHOW TABLES
USE spark_catalog
CALL system.x()
DELETE FROM v
MERGE INTO v USING other ON v.id = other.id WHEN MATCHED THEN DELETE
TRUNCATE TABLE v
ANALYZE TABLE v COMPUTE STATISTICS
REFRESH `{here}`
SELECT * FROM spark_catalog.default.v
SELECT * FROM information_schema.tables
SELECT * FROM global_temp.v
SELECT * FROM v VERSION AS OF 1
SELECT * FROM STREAM v
SELECT * FROM python_worker_logs()
SELECT * FROM read_files('{here}/secret.txt')
SELECT * FROM sql_keywords()
SELECT input_file_name() FROM v
SELECT input_file_block_start() FROM v
SELECT current_user()
SELECT current_catalog()
SELECT version()
SELECT raise_error('forged')
SELECT from_protobuf(x'00', 'M', '{here}/secret.txt')
SELECT from_avro(x'00', 'x')
SELECT xpath_string('<!DOCTYPE a [<!ENTITY b SYSTEM "file:{here}/secret.txt">]><a>&b;</a>', 'a')
SELECT shout(name) FROM v
SELECT /*+ REPARTITION(100000) */ * FROM v
SELECT * FROM v DISTRIBUTE BY id
SELECT id FROM v; DROP VIEW v
SELECT * FROM v WHERE id IN (
SELECT 'never closed
SELECT * FROM v WHERE id = :parameter
SELECT * FROM v WHERE id = ?
""".strip().splitlines()


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_but_the_views_is_reached(
    project: Path, running_spark: Spark, attempt: str
) -> None:
    before = everything_in(project)
    code, told = asked(project, attempt.replace("{here}", str(project)))
    assert code == 2
    assert told["error"]["code"] in REFUSED, told
    assert everything_in(project) == before
    for secret in ("the-secret", os.environ["HOME"]):
        assert secret not in json.dumps(told).replace(str(project), "")


@pytest.mark.parametrize(
    "attempt",
    [
        "SELECT _metadata.file_path FROM v",
        "SELECT _metadata FROM v",
        "SELECT _count FROM v",
        "SELECT * FROM loose",
        "SELECT * FROM written",
    ],
)
def test_hidden_columns_and_tables_of_others_are_not_there(
    project: Path, running_spark: Spark, attempt: str
) -> None:
    running_spark.bulk.range(3).createOrReplaceTempView("loose")
    with contextlib.suppress(Exception):
        running_spark.bulk.range(3).write.saveAsTable("written")
    try:
        code, told = asked(project, attempt)
    finally:
        running_spark.bulk.catalog.dropTempView("loose")
        running_spark.bulk.sql("DROP TABLE IF EXISTS written")
    assert code == 2
    assert told["error"]["code"] in REFUSED | {"spark-query-failed"}, told


def test_a_function_of_the_users_session_is_not_called(project: Path, running_spark: Spark) -> None:
    running_spark.bulk.udf.register("upper", lambda text: "mine", "string")
    code, told = asked(project, "SELECT upper(name) FROM v WHERE id = 0")
    assert (code, told["rows"]) == (0, [["A"]])


ORDINARY = """
SELECT * FROM v
TABLE v
FROM v SELECT id WHERE id > 1
VALUES (1, 'a'), (2, 'b')
SELECT a.id, b.name FROM v a JOIN other b ON a.id = b.id LEFT JOIN v c USING (id)
SELECT * FROM v a FULL OUTER JOIN other b ON a.id = b.id + 1
SELECT * FROM v LEFT SEMI JOIN other USING (id)
SELECT * FROM v CROSS JOIN other
SELECT * FROM v NATURAL JOIN other
SELECT /*+ BROADCAST(b) */ a.id FROM v a JOIN other b ON a.id = b.id
WITH x AS (SELECT id, count(*) AS n FROM v GROUP BY id), y AS (SELECT * FROM x) SELECT * FROM y JOIN v USING (id)
WITH v AS (SELECT 1 AS one) SELECT one FROM v
WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r
SELECT name, row_number() OVER (PARTITION BY name ORDER BY id DESC) FROM v
SELECT sum(id) OVER w, lag(id, 1) OVER w FROM v WINDOW w AS (PARTITION BY name ORDER BY day)
SELECT avg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM v
SELECT sum(id) OVER (ORDER BY day RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) FROM v
SELECT name, count(*), count(DISTINCT id), sum(id), avg(id), min(day), max(day), stddev(id) FROM v GROUP BY name
SELECT name, sum(id) AS s FROM v GROUP BY name HAVING sum(id) > 1 ORDER BY s DESC, 1 LIMIT 3 OFFSET 1
SELECT name, day, sum(id) FROM v GROUP BY CUBE (name, day)
SELECT name, day, sum(id), grouping(name) FROM v GROUP BY ROLLUP (name, day)
SELECT name, sum(id) FROM v GROUP BY GROUPING SETS ((name), ())
SELECT name, sum(id) FROM v GROUP BY ALL ORDER BY ALL
SELECT count(*) FILTER (WHERE id > 1), collect_list(name), first(id), any_value(id) FROM v
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id), median(id), listagg(name, ',') FROM v
SELECT DISTINCT name FROM v
SELECT id FROM v WHERE id IN (SELECT id FROM other WHERE id > 1) AND id NOT IN (3, 4)
SELECT id FROM v WHERE EXISTS (SELECT 1 FROM other o WHERE o.id = v.id)
SELECT id, (SELECT max(id) FROM other) FROM v WHERE id <> (SELECT min(id) FROM other)
SELECT id, (SELECT max(o.id) FROM other o WHERE o.name = v.name) FROM v
SELECT id FROM v UNION SELECT id FROM other
SELECT id FROM v UNION ALL SELECT id FROM other INTERSECT SELECT id FROM v EXCEPT SELECT 1
SELECT id FROM v MINUS SELECT id FROM other
SELECT id, x FROM v LATERAL VIEW explode(array(1, 2)) t AS x
SELECT id, p, x FROM v LATERAL VIEW OUTER posexplode(array(id)) t AS p, x
SELECT * FROM v, LATERAL (SELECT v.id + 1 AS next)
SELECT * FROM v, LATERAL explode(array(id, id + 1)) AS t(x)
SELECT explode(sequence(1, 3)), id FROM v
SELECT * FROM range(5)
SELECT * FROM explode(array(1, 2))
SELECT CASE WHEN id > 1 THEN 'many' ELSE 'few' END, CASE id WHEN 1 THEN 2 END, if(id > 1, 1, 2) FROM v
SELECT CAST(id AS STRING), id::double, TRY_CAST(name AS INT), int('5'), decimal(1.5) FROM v
SELECT day + 1, day - INTERVAL 1 MONTH, date_add(day, 3), day - DATE '2019-01-01', DATE '2020-01-01' FROM v
SELECT extract(YEAR FROM day), date_trunc('month', day), date_format(day, 'yyyy'), last_day(day) FROM v
SELECT current_date, current_date(), now(), current_timestamp, localtimestamp() FROM v
SELECT timestampadd(HOUR, 1, TIMESTAMP '2020-01-01 00:00:00'), timestampdiff(DAY, day, day) FROM v
SELECT timestamp(day) - INTERVAL '1' HOUR, timestamp(day) - timestamp(day), INTERVAL '1' DAY * 2, string(INTERVAL 1 YEAR / 2) FROM v
SELECT name LIKE 'a%', name NOT LIKE 'a!%' ESCAPE '!', name ILIKE 'A_', name RLIKE '[a-c]', name LIKE ANY ('a', 'b') FROM v
SELECT name LIKE ALL ('a%'), name NOT LIKE ANY ('b'), name ILIKE ANY ('A') FROM v
SELECT upper(name) || '-' || lower(name), substring(name FROM 1 FOR 2), trim(BOTH 'a' FROM name), position('a' IN name) FROM v
SELECT overlay(name PLACING 'x' FROM 1), ltrim(name), replace(name, 'a', 'b'), split(name, ',')[0], length(name) FROM v
SELECT id BETWEEN 1 AND 3, id IS NULL, id IS NOT NULL, id IS DISTINCT FROM 1, id <=> 1, NOT id = 1, id != 2 FROM v
SELECT -id, +id, id + 1, id - 1, id * 2, id / 2, id % 2, id DIV 2, id & 1, id | 1, id ^ 1, ~id, id << 1, id >> 1 FROM v
SELECT transform(array(1, 2), x -> x + id), filter(array(1, 2), x -> x > 1), aggregate(array(1), 0, (a, x) -> a + x) FROM v
SELECT struct(id, name).id, named_struct('a', id).a, map('a', id)['a'], array(1, 2)[0], array(struct(id)).id FROM v
SELECT coalesce(NULL, id), nvl(name, 'x'), nullif(id, 1), greatest(1, id), round(2.5), abs(-1), pow(2, 3) FROM v
SELECT to_json(struct(id)), get_json_object('{"a": 1}', '$.a'), from_json('{"a": 1}', 'a INT').a FROM v
SELECT * FROM (SELECT id, name FROM v) PIVOT (sum(id) FOR name IN ('a', 'b'))
SELECT * FROM (SELECT id, id AS b FROM v) UNPIVOT (value FOR kind IN (id, b))
SELECT * FROM v TABLESAMPLE (50 PERCENT)
SELECT * FROM v TABLESAMPLE (2 ROWS)
SELECT * EXCEPT (name) FROM v
FROM v |> WHERE id > 1 |> AGGREGATE count(*) GROUP BY name
SELECT t.* FROM (VALUES (1, 2)) AS t(a, b)
SELECT v.id, `v`.`name` FROM v
SELECT name COLLATE UTF8_LCASE = 'A' FROM v
SELECT id, id FROM v
""".strip().splitlines()


@pytest.mark.parametrize("sql", ORDINARY)
def test_ordinary_queries_are_answered(keeper: Keeper, sql: str) -> None:
    assert keeper.sql(sql).table.num_columns > 0


def test_every_listed_function_is_understood_by_the_gate(keeper: Keeper) -> None:
    """Spark's own examples of each function: none is refused, and what is not listed is."""
    session = keeper.spark.fresh()
    catalyst = session._jvm.org.apache.spark.sql.catalyst
    listed = FUNCTIONS | TABLE_FUNCTIONS
    seen, passed = set(), 0
    for registry in (
        catalyst.analysis.FunctionRegistry.builtin(),
        catalyst.analysis.TableFunctionRegistry.builtin(),
    ):
        names = registry.listFunction().toIndexedSeq()
        for index in range(names.size()):
            name = names.apply(index).funcName()
            examples = registry.lookupFunction(names.apply(index)).get().getExamples()
            seen.add(name)
            for example in re.findall(r"^\s*> (SELECT.*?);?\s*$", examples, re.MULTILINE):
                refusal = refused(session, example)
                if name not in listed:
                    assert refusal is not None, example
                elif refusal is not None and refusal.code == "query-not-allowed":
                    # An example may call another function, which is not listed.
                    called = re.search(r"function (\S+)", refusal.message)
                    assert called is not None, (name, example, refusal)
                    assert called[1] not in listed, (name, example, refusal)
                passed += refusal is None
    assert listed <= seen
    assert passed > 900


def refused(session: SparkSession, sql: str) -> UsageError | None:
    try:
        parsed_query(session, sql).frame(())
    except UsageError as error:
        return error
    return None


# -- limits ---------------------------------------------------------------------------------------


def test_rows_that_are_left_out_are_told(project: Path, running_spark: Spark) -> None:
    code, told = asked(project, "SELECT id FROM range(10)", "--limit", "3")
    assert (code, len(told["rows"]), told["truncated"]) == (0, 3, True)
    code, told = asked(project, "SELECT id FROM range(3)", "--limit", "3")
    assert (code, len(told["rows"]), told["truncated"]) == (0, 3, False)
    code, told = asked(project, "SELECT id FROM range(100001)")
    assert (code, len(told["rows"]), told["truncated"]) == (0, 100_000, True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000000000) a WHERE hash(id) = 0 AND sha2(string(id), 256) = ''",
        # Folded while it is planned: no job could be cancelled.
        """
        SELECT aggregate(sequence(1, 1000), 0L, (a, x) -> a + aggregate(sequence(1, 1000), 0L,
        (b, y) -> b + aggregate(sequence(1, 30), 0L, (c, z) -> c + z + y + x)))
        """,
    ],
)
def test_a_query_ends_at_its_time_limit(project: Path, running_spark: Spark, sql: str) -> None:
    code, told = asked(project, sql, "--timeout", "0.5")
    assert (code, told["error"]["code"]) == (2, "query-timeout")
    code, told = asked(project, "SELECT id FROM v WHERE id = 0")
    assert (code, told["rows"]) == (0, [[0]])


DEEP = {
    "parentheses": "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
    "subqueries": "SELECT * FROM " + "(SELECT * FROM " * 1_000 + "v" + ")" * 1_000,
    "signs": "SELECT " + "- " * 3_000 + "1",
    "denials": "SELECT * FROM v WHERE " + "NOT " * 3_000 + "true",
    "sums": "SELECT " + "1 + " * 3_000 + "1",
    "cases": "SELECT " + "CASE WHEN true THEN " * 1_000 + "1" + " END" * 1_000,
    "calls": "SELECT " + "abs(" * 2_000 + "1" + ")" * 2_000,
    "unions": " UNION ALL ".join(["SELECT 1"] * 3_000),
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_query_that_is_too_deep_is_refused_by_name(
    project: Path, running_spark: Spark, kind: str
) -> None:
    code, told = asked(project, DEEP[kind])
    assert (code, told["error"]["code"]) == (2, "query-too-deep")


def test_a_query_of_megabytes_is_refused_before_it_is_read(project: Path) -> None:
    code, told = asked(project, "SELECT '" + "x" * 10_000_000 + "'")
    assert (code, told["error"]["code"]) == (2, "query-too-long")


def test_long_lists_and_chains_of_ordinary_length_pass(keeper: Keeper) -> None:
    numbers = ", ".join(map(str, range(2_000)))
    assert keeper.sql(f"SELECT id FROM v WHERE id IN ({numbers})").table.num_rows == 6
    chain = " OR ".join(f"id = {n}" for n in range(300))
    assert keeper.sql(f"SELECT id FROM v WHERE {chain}").table.num_rows == 6
    total = " + ".join(["id"] * 200)
    assert keeper.sql(f"SELECT {total} FROM v").table.num_rows == 6
    assert keeper.sql("SELECT " + "(" * 100 + "id" + ")" * 100 + " FROM v").table.num_rows == 6


def test_an_unread_field_of_a_plan_is_looked_into(running_spark: Spark) -> None:
    """The plans of subqueries and of a WITH are no children of their nodes: they are found all the same."""
    session = running_spark.fresh()
    parser = session._jsparkSession.sessionState().sqlParser()
    text = (
        "WITH a AS (SELECT * FROM p) SELECT (SELECT 1 FROM q WHERE x IN (SELECT * FROM r)) FROM a"
    )
    nodes = PlanReader(session.sparkContext._gateway).nodes(parser.parsePlan(text))
    assert {node.words for node in nodes if node.name == "UnresolvedRelation"} == {
        ("a",), ("p",), ("q",), ("r",),
    }  # fmt: skip


def test_the_answer_says_what_it_was_read_at(keeper: Keeper) -> None:
    answer = keeper.sql("SELECT id AS n, name AS n FROM v", rows_max=2)
    assert (answer.columns, answer.is_cut) == ((("n", "bigint"), ("n", "string")), True)
    assert (answer.states, answer.txn) == ({"v": 0}, 0)
    with pytest.raises(ViewkeeperError, match="state-not-reached"):
        keeper.sql("SELECT 1", as_of=7)
