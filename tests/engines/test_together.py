"""Many instances by one query write the same as one by one: a corpus of queries over random data, read by pyarrow."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.engines.computing.together import Example
from falcon_assets.compute.engines.computing.together_query import compute_together
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.planning.captured import Captured
from falcon_assets.planning.data_usage import normal_place
from tests.spark.sandbox import Sandbox

pytestmark = pytest.mark.soak
ORDERS = "k string, v int, amount double, price decimal(9,2), at timestamp, day date, tags array<string>, ok boolean"
CUSTOMERS = "k string, w int, name string"
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
COUNT = 5
EMPTY = 3
"""The instance whose own hour has no rows."""
CORPUS = {
    "star": "SELECT * FROM orders",
    "columns": "SELECT k, v + 1 AS v, upper(k) AS big FROM orders WHERE v > 20",
    "constant": "SELECT 1 AS one, 'a' AS letter",
    "nothing": "SELECT k, v FROM orders WHERE v < 0",
    "count": "SELECT count(*) AS n FROM orders",
    "aggregate": "SELECT k, count(*) AS n, sum(v) AS s, avg(amount) AS a, max(price) AS p FROM orders GROUP BY k",
    "aggregate of nothing": "SELECT count(*) AS n, sum(v) AS s, max(day) AS d FROM orders WHERE v < 0",
    "sum of decimals": "SELECT sum(price) AS s, avg(price) AS a FROM orders",
    "distinct": "SELECT DISTINCT k, ok FROM orders",
    "count distinct": "SELECT k, count(DISTINCT v) AS n FROM orders GROUP BY k",
    "two counts distinct": "SELECT count(DISTINCT v) AS n, count(DISTINCT k) AS m, count(*) AS c FROM orders",
    "having": "SELECT k, sum(v) AS s FROM orders GROUP BY k HAVING sum(v) > 60",
    "count if": "SELECT count_if(ok) AS yes, count_if(NOT ok) AS no, bool_or(ok) AS some FROM orders",
    "filter of an aggregate": "SELECT k, sum(v) FILTER (WHERE ok) AS s FROM orders GROUP BY k",
    "group by expression": "SELECT v % 3 AS m, min(at) AS first FROM orders GROUP BY v % 3",
    "aggregate of aggregates": "SELECT max(s) AS top FROM (SELECT k, sum(v) AS s FROM orders GROUP BY k) x",
    "percentile": "SELECT k, percentile(v, 0.5) AS p, median(v) AS m FROM orders GROUP BY k",
    "statistics": "SELECT k, stddev(v) AS d, corr(v, amount) AS c FROM orders GROUP BY k",
    "join": "SELECT o.k, o.v, c.name FROM orders o JOIN customers c ON o.k = c.k",
    "join using": "SELECT k, v, name FROM orders JOIN customers USING (k) WHERE w > 10",
    "join by range": "SELECT o.v, c.w FROM orders o JOIN customers c ON o.v < c.w AND o.k = c.k",
    "cross join": "SELECT a.k, b.w FROM orders a CROSS JOIN customers b WHERE a.v > b.w",
    "comma": "SELECT a.k, b.w FROM orders a, customers b WHERE a.k = b.k",
    "self join": "SELECT a.k, b.v FROM orders a JOIN orders b ON a.k = b.k AND a.v < b.v",
    "join and aggregate": "SELECT name, sum(v) AS s, count(*) AS n FROM orders JOIN customers USING (k) GROUP BY name",
    "join of aggregates": (
        "SELECT a.k, a.s, b.n FROM (SELECT k, sum(v) AS s FROM orders GROUP BY k) a "
        "JOIN (SELECT k, count(*) AS n FROM customers GROUP BY k) b ON a.k = b.k"
    ),
    "window": "SELECT k, v, sum(v) OVER (PARTITION BY k ORDER BY v RANGE UNBOUNDED PRECEDING) AS r FROM orders",
    "window over all": "SELECT k, v, rank() OVER (ORDER BY v) AS r, count(*) OVER () AS n FROM orders",
    "lag": "SELECT k, v, lag(v) OVER (PARTITION BY k ORDER BY v, at) AS before FROM orders",
    "window of an aggregate": "SELECT k, sum(v) AS s, rank() OVER (ORDER BY sum(v) DESC) AS r FROM orders GROUP BY k",
    "qualify": "SELECT k, v FROM orders QUALIFY dense_rank() OVER (PARTITION BY k ORDER BY v DESC) = 1",
    "share": "SELECT k, v / sum(v) OVER (PARTITION BY k) AS part FROM orders WHERE v > 0",
    "cte": "WITH x AS (SELECT k, sum(v) AS s FROM orders GROUP BY k) SELECT k, s FROM x WHERE s > 50",
    "cte twice": (
        "WITH x AS (SELECT k, sum(v) AS s FROM orders GROUP BY k), y AS (SELECT max(s) AS top FROM x) "
        "SELECT x.k, x.s FROM x JOIN y ON x.s = y.top"
    ),
    "cte with the name of an input": "WITH orders AS (SELECT k, v FROM orders WHERE v > 50) SELECT * FROM orders",
    "union": "SELECT k FROM orders UNION SELECT k FROM customers",
    "union all": "SELECT k, v FROM orders UNION ALL SELECT k, w FROM customers",
    "except": "SELECT k FROM orders EXCEPT SELECT k FROM customers",
    "except all": "SELECT k FROM orders EXCEPT ALL SELECT k FROM customers",
    "intersect": "SELECT k FROM orders INTERSECT SELECT k FROM customers",
    "intersect all": "SELECT k FROM orders INTERSECT ALL SELECT k FROM customers",
    "lateral": "SELECT o.k, x.top FROM orders o, LATERAL (SELECT o.v * 2 AS top) x",
    "distinct in order": "SELECT DISTINCT k, v FROM orders ORDER BY v DESC, k",
    "parameter inside": "SELECT count(*) AS n FROM (SELECT k FROM orders WHERE at > :nominal_time) x",
    "union of counts": "SELECT 'o' AS what, count(*) AS n FROM orders UNION ALL SELECT 'c', count(*) FROM customers",
    "union in an aggregate": (
        "SELECT k, count(*) AS n FROM (SELECT k FROM orders UNION ALL SELECT k FROM customers) x GROUP BY k"
    ),
    "order": "SELECT k, v, at FROM orders ORDER BY v DESC, k, at",
    "order by position": "SELECT v, k, at FROM orders ORDER BY 1, 2 DESC NULLS LAST, 3",
    "order by aggregate": "SELECT k, count(*) AS n FROM orders GROUP BY k ORDER BY count(*) DESC, k NULLS FIRST",
    "limit": "SELECT k, v, at FROM orders ORDER BY v DESC, at, k LIMIT 3",
    "limit of groups": "SELECT k, sum(v) AS s FROM orders GROUP BY k ORDER BY s DESC, k LIMIT 2",
    "top inside": "SELECT count(*) AS n, sum(v) AS s FROM (SELECT v FROM orders ORDER BY v DESC, at, k LIMIT 3) x",
    "lateral view": "SELECT k, tag FROM orders LATERAL VIEW explode(tags) t AS tag",
    "explode": "SELECT k, explode(tags) AS tag FROM orders",
    "explode and count": "SELECT tag, count(*) AS n FROM orders LATERAL VIEW OUTER explode(tags) t AS tag GROUP BY tag",
    "pivot": "SELECT * FROM (SELECT ok, k, v FROM orders) PIVOT (sum(v) FOR k IN ('a', 'b'))",
    "values": "SELECT o.k, x.n FROM orders o JOIN VALUES ('a', 1), ('b', 2) AS x(k, n) ON o.k = x.k",
    "case": "SELECT CASE WHEN v > 50 THEN 'big' WHEN v IS NULL THEN 'none' ELSE 'small' END AS size, k FROM orders",
    "nulls": "SELECT coalesce(k, 'none') AS k, nullif(v, 7) AS v, k IS NULL AS no_k FROM orders",
    "null safe": "SELECT o.v, c.w FROM orders o JOIN customers c ON o.k <=> c.k",
    "structs": "SELECT named_struct('k', k, 'v', v) AS s, map(k, v) AS m FROM orders WHERE k IS NOT NULL",
    "sorted list": "SELECT k, sort_array(tags) AS tags, size(tags) AS n, array_contains(tags, 'x') AS x FROM orders",
    "time zones": (
        "SELECT from_utc_timestamp(at, 'America/New_York') AS there, date_trunc('DAY', at) AS day, "
        "date_format(at, 'yyyy-MM-dd HH:mm') AS text, hour(at) AS h FROM orders"
    ),
    "interval": "SELECT k, at + INTERVAL 1 DAY AS next, day + 1 AS after, datediff(day, '2013-01-01') AS d FROM orders",
    "nominal time": "SELECT :nominal_time AS at, k, count(*) AS n FROM orders GROUP BY k",
    "nominal time of no groups": "SELECT :nominal_time AS at, k, count(*) AS n FROM orders WHERE v < 0 GROUP BY k",
    "nominal time of some groups": "SELECT :nominal_time AS at, k, count(*) AS n FROM orders WHERE v < 3 GROUP BY k",
    "nominal time of nothing": "SELECT :nominal_time AS at, count(*) AS n FROM orders WHERE v < 0",
    "nominal time in a filter": "SELECT k, v FROM orders WHERE at >= :nominal_time - INTERVAL 30 MINUTES",
    "property": "SELECT k, v, :label AS label FROM orders WHERE v > CAST(:least AS INT)",
    "property in a cte": (
        "WITH x AS (SELECT k, :label AS label FROM orders) "
        "SELECT label, count(*) AS n, :label AS again FROM x GROUP BY 1"
    ),
    "casts": "SELECT try_cast(k AS INT) AS n, CAST(v AS STRING) AS s, CAST(price AS DOUBLE) AS p FROM orders",
    "json": "SELECT to_json(named_struct('k', k)) AS j, get_json_object('{\"a\":1}', '$.a') AS a FROM orders",
    "regular expressions": "SELECT k RLIKE '^[ab]$' AS m, regexp_replace(k, 'a', ';') AS r FROM orders",
    "comment at the end": "SELECT count(*) AS n FROM orders -- all of them",
    "brackets": "(SELECT k FROM orders) UNION (SELECT k FROM customers)",
    "left join": "SELECT o.k, o.v, c.w FROM orders o LEFT JOIN customers c ON o.k = c.k",
    "left join using": "SELECT k, v, name FROM orders LEFT JOIN customers USING (k)",
    "star of a left join": "SELECT * FROM orders LEFT JOIN customers USING (k)",
    "right join": "SELECT c.k, o.v, c.w FROM orders o RIGHT JOIN customers c ON o.k = c.k AND o.v < c.w",
    "full join": "SELECT c.k, o.v, c.w FROM orders o FULL JOIN customers c ON o.k = c.k",
    "full join using": "SELECT k, v, w FROM orders FULL JOIN customers USING (k)",
    "semi join": "SELECT o.k, o.v FROM orders o LEFT SEMI JOIN customers c ON o.k = c.k",
    "anti join": "SELECT o.k, o.v FROM orders o LEFT ANTI JOIN customers c ON o.k = c.k",
    "two left joins": (
        "SELECT o.k, c.w, d.v AS other FROM orders o LEFT JOIN customers c ON o.k = c.k LEFT JOIN orders d ON d.v = c.w"
    ),
    "left join and groups": (
        "SELECT o.k, count(c.w) AS n, sum(c.w) AS s FROM orders o LEFT JOIN customers c ON o.k = c.k GROUP BY o.k"
    ),
    "left join counted": "SELECT count(*) AS n, count(c.w) AS m FROM orders o LEFT JOIN customers c ON o.k = c.k",
    "left join of groups": (
        "SELECT a.k, a.n, b.top FROM (SELECT k, count(*) AS n FROM orders GROUP BY k) a "
        "LEFT JOIN (SELECT k, max(w) AS top FROM customers GROUP BY k) b ON a.k = b.k"
    ),
    "left join of a cte": (
        "WITH t AS (SELECT k, max(w) AS m FROM customers GROUP BY k) "
        "SELECT o.k, o.v, t.m, :label AS label FROM orders o LEFT JOIN t ON o.k = t.k WHERE o.v > CAST(:least AS INT)"
    ),
    "cte with a left join": (
        "WITH x AS (SELECT o.k, c.w FROM orders o LEFT JOIN customers c ON o.k = c.k) "
        "SELECT k, count(w) AS n FROM x GROUP BY k"
    ),
    "window over a left join": (
        "SELECT o.k, o.v, rank() OVER (PARTITION BY o.k ORDER BY o.v, c.w) AS r "
        "FROM orders o LEFT JOIN customers c ON o.k = c.k"
    ),
    "left join in order": (
        "SELECT o.k, o.v, c.w, o.at FROM orders o LEFT JOIN customers c ON o.k = c.k "
        "ORDER BY o.v DESC, o.at, c.w LIMIT 5"
    ),
    "exists": "SELECT k, v FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.k = o.k)",
    "not exists": "SELECT k, v FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.k = o.k)",
    "exists or": "SELECT k, v FROM orders o WHERE v > 70 OR EXISTS (SELECT 1 FROM customers c WHERE c.k = o.k)",
    "in": "SELECT k, v FROM orders WHERE k IN (SELECT k FROM customers) AND v > 20",
    "not in": "SELECT k, v FROM orders WHERE k NOT IN (SELECT k FROM customers WHERE k IS NOT NULL)",
    "not in with nulls": "SELECT k, v FROM orders WHERE k NOT IN (SELECT k FROM customers)",
    "value": "SELECT k, v - (SELECT max(w) FROM customers) AS d FROM orders",
    "value of a row": "SELECT k, (SELECT count(*) FROM customers c WHERE c.k = o.k) AS n FROM orders o",
    "above the average": "SELECT k, v FROM orders WHERE v > (SELECT avg(v) FROM orders)",
    "unions of both": (
        "SELECT count(*) AS n FROM orders o LEFT JOIN customers c ON o.k = c.k "
        "UNION ALL SELECT count(*) FROM customers WHERE k IN (SELECT k FROM orders)"
    ),
}


def _landed(sandbox: Sandbox) -> None:
    """Hours of orders and customers; one hour is empty, some values are null, some rows are alike."""
    chance = random.Random(20130101)
    for hour in range(-1, COUNT):
        at = FIRST + timedelta(hours=hour)
        orders = [
            {
                "k": chance.choice(["a", "b", "c", None]),
                "v": chance.choice([None, *range(100)]),
                "amount": chance.random() * 100,
                "price": str(chance.randrange(10_000) / 100),
                "at": (at + timedelta(seconds=n, minutes=chance.randrange(59))).isoformat(),
                "day": at.date().isoformat(),
                "tags": chance.choice([None, [], ["x"], ["x", "y"]]),
                "ok": chance.choice([True, False, None]),
            }
            for n in range(0 if hour == EMPTY else 12)
        ]
        customers = [{"k": k, "w": chance.randrange(100), "name": f"name of {k}"} for k in ("a", "b", None, "d")]
        for name, rows in (("orders", orders), ("customers", customers)):
            for part in range(2):
                lines = [json.dumps(row) for row in rows[part::2]]
                sandbox.file(f"{name}/{hour + 1}/part-{part}.json", "\n".join(lines))


def _inputs(sandbox: Sandbox, number: int) -> tuple[InputData, ...]:
    """Two hours of orders, so that windows overlap, and one of customers."""
    hours = (f"orders/{number}", f"orders/{number + 1}")
    return (
        sandbox.counted("orders", *hours, schema=ORDERS),
        sandbox.counted("customers", f"customers/{number + 1}", schema=CUSTOMERS),
    )


def _tasks(sandbox: Sandbox, sql: str, folder: str) -> list[WorkflowTask]:
    sandbox.file("q.sql", sql)
    workflow = sandbox.workflow(engine="spark-sql", path="q.sql")
    return [
        sandbox.task(
            workflow,
            nominal=FIRST + timedelta(hours=number),
            inputs=_inputs(sandbox, number),
            outputs=(replace(sandbox.output("delays"), url=f"{sandbox.folder.as_uri()}/out/{folder}/{number}"),),
            properties={"label": f"it's {number}", "least": "20"},
        )
        for number in range(COUNT)
    ]


def _files(task: WorkflowTask) -> list[Path]:
    folder = Path(normal_place(task.outputs[0].url))
    return sorted(folder.glob("*.parquet"))


def _rows(task: WorkflowTask) -> list[tuple[Any, ...]]:
    tables = [pq.read_table(file) for file in _files(task)]
    return [tuple(map(_plain, row.values())) for row in pa.concat_tables(tables).to_pylist()]


def _plain(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else repr(value) if isinstance(value, list | dict) else value


def _as_seen(captured: Captured) -> object:
    """What is known of reads and columns, in one spelling and without order."""

    def roots(found: Sequence[str]) -> frozenset[str]:
        return frozenset(map(normal_place, found))

    reads = {(roots(one.roots), roots(one.paths), one.is_complete) for one in captured.reads}
    writes = [
        (
            [(c.name, c.type, {(roots(at), name) for at, name in c.inputs}, c.how and sorted(c.how)) for c in one.each],
            {(roots(at), name) for at, name in one.rows_from or ()},
            normal_place(one.path or "").rpartition("/")[2],
        )
        for one in captured.writes
    ]
    return reads, writes, captured.unknown, captured.problem


def compared(sandbox: Sandbox, name: str) -> list[WorkflowResult]:
    """Computes the query in both ways and compares what there is then."""
    sql, folder = CORPUS[name], name.replace(" ", "-")
    alone = _tasks(sandbox, sql, f"alone/{folder}")
    results = [run_workflow(task) for task in alone]
    together = _tasks(sandbox, sql, f"together/{folder}")
    example = Example.of(alone[0], results[0])
    assert all(map(example.is_like, together))
    found = compute_together(together, "q.sql", example)
    for one, before, other, now in zip(alone, results, together, found, strict=True):
        assert [*now.records.values()] == [*before.records.values()] == [len(_rows(other))]
        is_ordered = "order" in name or "limit" in name
        order = (lambda rows: rows) if is_ordered else (lambda rows: sorted(rows, key=repr))
        assert order(_rows(other)) == order(_rows(one)), (name, other.nominal)
        assert len(_files(other)) == 1
        schemas = [pq.read_schema(file) for file in (*_files(one)[:1], *_files(other))]
        assert schemas[0].equals(schemas[1], check_metadata=True), schemas
        assert _as_seen(now.captured) == _as_seen(before.captured)
    left = {path.name for path in (sandbox.folder / "out/together" / folder).iterdir()}
    assert left == {str(number) for number in range(COUNT)}
    return found


def test_orc_has_the_same_rows_and_columns(sandbox: Sandbox) -> None:
    _landed(sandbox)
    sql = "SELECT k, sum(v) AS s, sum(price) AS p, max(at) AS at FROM orders GROUP BY k"
    ways = []
    for way in ("alone", "together"):
        tasks = _tasks(sandbox, sql, way)
        orc_output = sandbox.output("delays", format="orc")
        ways.append([replace(one, outputs=(replace(orc_output, url=one.outputs[0].url),)) for one in tasks])
    results = [run_workflow(task) for task in ways[0]]
    found = compute_together(ways[1], "q.sql", Example.of(ways[0][0], results[0]))
    for before, now, *tasks in zip(results, found, *ways, strict=True):
        assert now.records == before.records
        (one,), (other,) = ([*Path(normal_place(task.outputs[0].url)).glob("*.orc")] for task in tasks)
        assert orc.ORCFile(other).schema.equals(orc.ORCFile(one).schema)
        rows = [sorted(map(repr, orc.read_table(file).to_pylist())) for file in (one, other)]
        assert rows[0] == rows[1]


@pytest.mark.parametrize("name", CORPUS)
def test_the_same_as_one_by_one(sandbox: Sandbox, name: str) -> None:
    _landed(sandbox)
    compared(sandbox, name)


def test_instances_without_an_optional_input(sandbox: Sandbox) -> None:
    _landed(sandbox)
    results = []
    for way in ("alone", "together"):
        tasks = _tasks(sandbox, "SELECT count(*) AS n, max(w) AS w FROM customers", way)
        tasks = [replace(task, inputs=(sandbox.input("customers", schema=CUSTOMERS),)) for task in tasks]
        results.append(tasks)
    example = Example.of(results[0][0], run_workflow(results[0][0]))
    compute_together(results[1], "q.sql", example)
    assert [_rows(task) for task in results[1]] == [[(0, None)]] * COUNT
    assert not example.is_like(_tasks(sandbox, "SELECT 1", "other")[0])
