"""Which columns come from which: hand-made queries with answers that were worked out on paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.capture.capturing import capturing
from falcon_assets.compute.spark.sessions import isolated
from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.captured import Captured, ColumnRead
from falcon_assets.planning.version_columns import Hows
from tests.spark.sandbox import Sandbox

SETUP = """
from pyspark.sql import functions as sf

def views(spark, folder):
    for name in ("a", "b"):
        spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    spark.udf.register("shout", lambda text: text.upper(), "string")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW inner_view AS SELECT k, v + w AS vw FROM a")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW outer_view AS SELECT k AS kk, vw * 2 AS double FROM inner_view")
    spark.sql("CACHE TABLE cached AS SELECT k, max(v) AS top FROM a GROUP BY k")
"""
ROWS = "rows"
"""Stands for what decides which rows there are."""
QUERIES: dict[str, tuple[str, dict[str, str]]] = {
    "join": (
        "SELECT a.k, a.v, b.n AS name FROM a LEFT JOIN b ON a.k = b.k",
        {"k": "a.k", "v": "a.v", "name": "b.n", ROWS: "a.k b.k"},
    ),
    "aggregate": (
        "SELECT k, sum(v) AS total, count(*) AS n, max(w) - min(w) AS spread FROM a GROUP BY k HAVING sum(v) > 0",
        {"k": "a.k", "total": "a.v", "n": "", "spread": "a.w", ROWS: "a.k a.v"},
    ),
    "window": (
        "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY w) AS running FROM a",
        {"k": "a.k", "running": "a.k a.v a.w"},
    ),
    "case": (
        "SELECT CASE WHEN v > 1 THEN n ELSE 'none' END AS label FROM a JOIN b USING (k)",
        {"label": "a.v b.n", ROWS: "a.k b.k"},
    ),
    "explode": (
        "SELECT k, item FROM a LATERAL VIEW explode(items) t AS item",
        {"k": "a.k", "item": "a.items", ROWS: "a.items"},
    ),
    "star": ("SELECT *, v AS again FROM b JOIN a USING (k)", {}),
    "cte": (
        "WITH x AS (SELECT k, v AS y FROM a), z AS (SELECT k, y + 1 AS y FROM x) "
        "SELECT z.y, x.y AS first FROM z JOIN x USING (k)",
        {"y": "a.v", "first": "a.v", ROWS: "a.k"},
    ),
    "union": (
        "SELECT k, v FROM a UNION ALL SELECT k, length(n) FROM b",
        {"k": "a.k b.k", "v": "a.v b.n"},
    ),
    "udf": ("SELECT shout(n) AS loud, k FROM b", {"loud": "b.n", "k": "b.k"}),
    "nested_views": ("SELECT kk, double FROM outer_view", {"kk": "a.k", "double": "a.v a.w"}),
    "cache": ("SELECT b.n, cached.top FROM cached JOIN b USING (k)", {"n": "b.n", "top": "a.v", ROWS: "a.k b.k"}),
    "subqueries": (
        "SELECT k, (SELECT max(n) FROM b) AS top, (SELECT count(b.n) FROM b WHERE b.k = a.k) AS own "
        "FROM a WHERE k IN (SELECT k FROM b)",
        {
            "k": "a.k",
            "top": "b.n",
            "own": "a.k b.n",
            ROWS: "a.k b.k",
        },  # what it is asked with, not what it is filtered by
    ),
}
QUERIES["star"] = (
    QUERIES["star"][0],
    {"k": "b.k", "n": "b.n", "v": "a.v", "w": "a.w", "items": "a.items", "again": "a.v", ROWS: "a.k b.k"},
)


def planted(folder: Path, cluster: Cluster) -> Sandbox:
    made = Sandbox(folder, cluster)
    spark = made.session()
    spark.sql("SELECT 'x' AS k, 1 AS v, 2 AS w, array(1, 2) AS items").write.parquet((folder / "a").as_uri())
    spark.sql("SELECT 'x' AS k, 'ex' AS n").write.parquet((folder / "b").as_uri())
    return made


def columns_of(found: Captured) -> dict[str, dict[str, str]]:
    """By output and column, what it came from."""
    return {
        (one.path or "").rpartition("/")[2]: {
            **{column.name: named(column.inputs) for column in one.each},
            **({ROWS: named(one.rows_from)} if one.rows_from else {}),
        }
        for one in found.writes
    }


def named(read: Sequence[ColumnRead]) -> str:
    return " ".join(sorted({f"{roots[0].rpartition('/')[2]}.{name}" for roots, name in read}))


@pytest.fixture(scope="module")
def captured(told_of: Callable[[str], Captured]) -> Callable[[str], dict[str, str]]:
    return lambda query: columns_of(told_of(query))["out"]


@pytest.fixture(scope="module")
def told_of(tmp_path_factory: pytest.TempPathFactory, local_cluster: Cluster) -> Callable[[str], Captured]:
    made = planted(tmp_path_factory.mktemp("columns"), local_cluster)
    names: dict[str, object] = {}
    exec(SETUP, names)
    views = names["views"]
    assert callable(views)

    def one(query: str) -> Captured:
        with isolated(made.session()) as child, capturing(child) as told:
            views(child, f"file://{made.folder}")
            child.sql(query).write.mode("overwrite").parquet((made.folder / "out").as_uri())
            found = told()
        assert found.problem == ""
        return found

    return one


def hows(read: Sequence[ColumnRead], ways: Hows) -> str:
    return ", ".join(sorted(f"{named([one])} {' '.join(how)}" for one, how in zip(read, ways, strict=True)))


@pytest.mark.parametrize(
    ("query", "known"),
    [
        (
            "SELECT b.k, CASE WHEN v > 1 THEN upper(n) END AS label, "
            "sum(v) OVER (PARTITION BY a.k ORDER BY w) AS running FROM a JOIN b ON a.k = b.k WHERE w > 0 ORDER BY v",
            {
                "k": "b.k IDENTITY",
                "label": "a.v CONDITIONAL, b.n TRANSFORMATION",
                "running": "a.k WINDOW, a.v AGGREGATION, a.w WINDOW",
                ROWS: "a.k JOIN, a.v SORT, a.w FILTER, b.k JOIN",
            },
        ),
        (
            "SELECT k, twice, twice + max(v) AS both FROM (SELECT k, v, v * 2 AS twice FROM a) GROUP BY k, twice",
            {
                "k": "a.k IDENTITY",
                "twice": "a.v TRANSFORMATION",
                "both": "a.v AGGREGATION TRANSFORMATION",
                ROWS: "a.k GROUP_BY, a.v GROUP_BY",
            },
        ),
    ],
)
def test_in_which_ways_columns_come_from_others(
    query: str, known: dict[str, str], told_of: Callable[[str], Captured]
) -> None:
    (write,) = told_of(query).writes
    found = {one.name: hows(one.inputs, one.how) for one in write.each}
    assert {**found, ROWS: hows(write.rows_from or (), write.rows_how)} == known


@pytest.mark.parametrize("query", QUERIES)
def test_columns_of_a_query(query: str, captured: Callable[[str], dict[str, str]]) -> None:
    assert captured(QUERIES[query][0]) == QUERIES[query][1]


PROGRAM = (
    SETUP
    + """
import sys
from pyspark.sql import SparkSession

def run(spark, inputs, instance):
    folder = instance.properties["folder"]
    write(spark, folder)
    return spark.range(1).selectExpr("id AS one")

def write(spark, folder):
    views(spark, folder)
    for name, query in QUERIES.items():
        spark.sql(query).write.parquet(f"{folder}/out_{name}")

if __name__ == "__main__":
    spark = SparkSession.builder.getOrCreate()
    write(spark, sys.argv[1])
    spark.range(1).selectExpr("id AS one").write.parquet(sys.argv[2])
"""
)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["pyspark", "spark-submit"])
def test_all_of_them_by_every_engine_everywhere(engine: str, tmp_path: Path, any_cluster: Cluster) -> None:
    made = planted(tmp_path, any_cluster)
    made.file("all.py", f"QUERIES = { ({name: query for name, (query, _) in QUERIES.items()})!r}\n{PROGRAM}")
    more = {} if engine == "pyspark" else {"args": ["${folder}", "${delays}"]}
    task = made.task(made.workflow(engine=engine, path="all.py", **more), properties={"folder": tmp_path.as_uri()})
    found = run_workflow(task).captured
    assert found.problem == ""
    columns = columns_of(found)
    assert {name: columns[f"out_{name}"] for name in QUERIES} == {name: known for name, (_, known) in QUERIES.items()}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT k FROM a WHERE v > 1 AND EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "a.k a.v b.k"),
        ("SELECT k FROM a ORDER BY w LIMIT 1", "a.w"),
        ("SELECT DISTINCT k, v FROM a", "a.k a.v"),
        ("SELECT k FROM a EXCEPT SELECT n FROM b", "a.k b.n"),
        ("SELECT k FROM a INTERSECT SELECT k FROM b", "a.k b.k"),
        (
            "SELECT k FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY w) AS n FROM a) WHERE n = 1",
            "a.k a.w",
        ),
        ("SELECT count(*) AS n FROM a", ""),
    ],
)
def test_what_decides_which_rows_there_are(query: str, rows: str, captured: Callable[[str], dict[str, str]]) -> None:
    assert captured(query).get(ROWS, "") == rows


def test_what_python_does_with_whole_rows_is_not_sure(tmp_path: Path, spark: SparkSession) -> None:
    spark.sql("SELECT 'x' AS k, 1 AS v").write.parquet((tmp_path / "a").as_uri())
    with isolated(spark) as child, capturing(child) as told:
        rows = child.read.parquet((tmp_path / "a").as_uri())
        mapped = rows.mapInPandas(lambda parts: parts, "k string, v int").selectExpr("k", "v + 1 AS more", "1 AS one")
        mapped.write.parquet((tmp_path / "mapped").as_uri())
        child.createDataFrame(rows.collect(), "k string, v int").write.parquet((tmp_path / "collected").as_uri())
        found = told()
    assert [named(one.rows_from or ()) for one in found.writes] == ["a.k a.v", ""]
    opaque = [[(one.name, one.is_opaque, len(one.inputs)) for one in write.each] for write in found.writes]
    assert opaque == [[("k", True, 2), ("more", True, 2), ("one", False, 0)], [("k", True, 0), ("v", True, 0)]]
