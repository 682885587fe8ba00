"""Which queries can be computed for many instances at once, and how they are written; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.compute.engines.computing.together_joins import AloneError
from falcon_assets.compute.engines.computing.together_sql import OrderTerm, together, why_alone
from tests.builders import make_feed

SCHEMA = "k string, v int"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT 1; SELECT 2", "it has several statements"),
        ("SET a = 1", "it is no query"),
        ("SELECT rand() AS r FROM a", "rand is no function of the inputs alone"),
        ("SELECT UUID() AS r FROM a", "uuid is no function of the inputs alone"),
        ("SELECT current_timestamp AS t FROM a", "current_timestamp is no function of the inputs alone"),
        ("SELECT current_date() AS t FROM a", "current_date is no function of the inputs alone"),
        ("SELECT input_file_name() AS f FROM a", "input_file_name is no function of the inputs alone"),
        ("SELECT monotonically_increasing_id() AS f FROM a", "monotonically_increasing_id is no function"),
        ("SELECT spark_partition_id() AS f FROM a", "spark_partition_id is no function of the inputs alone"),
        ("SELECT first(v) AS v FROM a", "the result of first depends on the order of rows"),
        ("SELECT collect_list(v) AS v FROM a", "the result of collect_list depends on the order of rows"),
        ("SELECT lib.mine(v) AS v FROM a", "mine may be a function of a user"),
        ("SELECT v FROM a LIMIT 3", "LIMIT without ORDER BY takes any rows"),
        ("SELECT v FROM a OFFSET 3", "LIMIT without ORDER BY takes any rows"),
        ("SELECT * FROM (SELECT v FROM a LIMIT 3) x ORDER BY v", "LIMIT without ORDER BY takes any rows"),
        ("SELECT v FROM a NATURAL LEFT JOIN b", "it has a NATURAL JOIN beside outer joins"),
        ("SELECT a.* FROM a LEFT JOIN b ON a.k = b.k", "it has all columns of one of several tables"),
        ("SELECT v FROM a FULL JOIN b ON a.k = b.k JOIN c USING (v)", "it joins by USING after a FULL JOIN"),
        ("SELECT v FROM a WHERE k IN (SELECT k FROM b ORDER BY k LIMIT 1)", "it limits a subquery"),
        ("SELECT v FROM a WHERE k IN (SELECT k FROM b UNION SELECT k FROM c)", "it has a set operation in a condition"),
        ("SELECT v FROM a WHERE v IN (SELECT count(*) FROM b)", "a condition has a subquery with an aggregate without"),
        ("SELECT 1 + (SELECT max(v) FROM a) AS x", "outer joins and subqueries are of more than inputs"),
        ("SELECT v FROM a LEFT JOIN (SELECT max(v) AS m FROM b) x ON v = m", "outer joins and subqueries are of more"),
        ("SELECT v FROM a LEFT JOIN VALUES (1) AS x(n) ON v = n", "outer joins and subqueries are of more than inputs"),
        ("SELECT v FROM a LEFT JOIN (WITH c AS (SELECT 1) SELECT * FROM c) x ON TRUE", "it has WITH within a query"),
        ("SELECT k, count(*) AS n FROM a GROUP BY ROLLUP (k)", "it groups in several ways"),
        ("SELECT * FROM a UNPIVOT (x FOR n IN (v, w))", "it has an UNPIVOT"),
        ("SELECT v FROM a TABLESAMPLE (10 PERCENT)", "a sample takes any rows"),
        ("SELECT v FROM a SORT BY v", "it says itself how rows are distributed"),
        ("SELECT k FROM a ORDER BY v % 3", "it orders by what is no column of its result"),
    ],
)
def test_what_is_computed_one_by_one(sql: str, why: str) -> None:
    with pytest.raises(AloneError) as caught:
        together(sql)
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM a",
        "WITH x AS (SELECT k, sum(v) AS s FROM a GROUP BY k) SELECT x.k, s FROM x JOIN b ON x.k = b.k",
        "SELECT k FROM a UNION SELECT k FROM b",
        "SELECT k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM a -- rand() is only spoken of",
        "SELECT 'current_date(' AS text, `rand` FROM a",
        "SELECT k, v FROM (SELECT * FROM a) x WHERE k IN ('a', 'b')",
        "SELECT v FROM a LEFT ANTI JOIN b USING (k)",
        "SELECT v FROM a, b WHERE k IN (SELECT k FROM c)",
        "SELECT v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    ],
)
def test_what_is_computed_together(sql: str) -> None:
    assert together(sql).order == ()


def test_the_order_is_that_of_columns() -> None:
    found = together(
        "SELECT k AS name, v, count(*) AS n FROM a GROUP BY 1, 2 ORDER BY count(*) DESC, NAME, 2 NULLS LAST"
    )
    assert found.order == (OrderTerm(2, True, False), OrderTerm("NAME", False, True), OrderTerm(1, False, False))


def test_the_query_has_the_rows_of_each_instance() -> None:
    sql = together("SELECT :nominal_time AS at, ':least' AS text, v::int AS x FROM `a-b` WHERE v > :least").query(
        ["a-b"], ["nominal_time", "k"]
    )
    assert sql == (
        "SELECT falcon_instances.*, falcon_result.* FROM falcon_instances, LATERAL (\n"
        "WITH `a-b` AS (SELECT * EXCEPT (`falcon_instance`) FROM `falcon_rows_of_a-b` "
        "WHERE `falcon_instance` = falcon_instances.`falcon_instance`), "
        "`a_b` AS (SELECT * EXCEPT (`falcon_instance`) FROM `falcon_rows_of_a-b` "
        "WHERE `falcon_instance` = falcon_instances.`falcon_instance`) (\n"
        "SELECT :nominal_time AS at, ':least' AS text, v::int AS x "
        "FROM `a-b` WHERE v > :least\n)\n) AS falcon_result"
    )


def test_sources_of_an_outer_join_have_keys() -> None:
    found = together("SELECT a.k, w FROM a LEFT JOIN (SELECT k, max(v) AS w FROM b GROUP BY k) m ON a.k = m.k")
    assert found.sql == (
        "SELECT a.k, w FROM (SELECT * EXCEPT (`falcon_instance`), `falcon_instance` AS falcon_instance_0 "
        "FROM `falcon_rows_of_a`) AS `a` LEFT JOIN (SELECT k, MAX(v) AS w, falcon_instance_2 AS falcon_instance_1 "
        "FROM (SELECT * EXCEPT (`falcon_instance`), `falcon_instance` AS falcon_instance_2 FROM `falcon_rows_of_b`) "
        "AS `b` GROUP BY k, falcon_instance_2) AS m ON (a.k = m.k) AND falcon_instance_1 = falcon_instance_0 "
        "WHERE falcon_instance_0 = falcon_instances.`falcon_instance`"
    )
    assert found.spoken[1].endswith("(SELECT k, MAX(v) AS w FROM b GROUP BY k) AS m ON a.k = m.k")


def test_parameters_in_a_result_are_computed_beside_the_query() -> None:
    found = together(
        "WITH x AS (SELECT k, 1 AS one FROM a) SELECT :day AS day, date_trunc('HOUR', :day) hour, k, count(*) AS n, "
        "concat(k, :day) AS text FROM x GROUP BY k HAVING max(:day) > ''"
    )
    assert found.of_instance(["day"]) == {
        0: "falcon_instances.`falcon_parameter_day` AS day",
        1: "date_trunc('HOUR', falcon_instances.`falcon_parameter_day`) hour",
    }
    assert "SELECT :day AS day, date_trunc('HOUR', :day) hour, k" in found.query([], ["day"])
    assert "concat(k, falcon_instances.`falcon_parameter_day`) AS text" in found.query([], ["day"])
    assert found.of_instance([]) == {}


def test_feeds_that_need_one_instance_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("SELECT count(*) AS n FROM a")
    given, made = make_feed(name="a", schema=SCHEMA), make_feed(name="out", format="parquet")
    assert why_alone(file, "primary", [given], [made]) == ""
    assert why_alone(file, "primary", [given], []) == "it has no output"
    assert why_alone(file, "primary", [given], [made, made]) == "it has several outputs"
    assert why_alone(file, "primary", [given], [make_feed(name="out", format="csv")]) == (
        "its output out is neither in Parquet nor in ORC"
    )
    assert why_alone(file, "primary", [make_feed(name="a")], [made]) == (
        "its input a declares no schema, so each instance may have other columns"
    )
    assert why_alone(tmp_path / "none.sql", "primary", [given], [made]) == f"{tmp_path}/none.sql cannot be read"
