"""What is wrong with programs is found without Spark, and what Spark may understand is refused nowhere."""

from __future__ import annotations

import pytest

from falcon_assets.compute.engines.computing.python_function import python_mistakes
from falcon_assets.compute.engines.computing.sql_mistakes import sql_mistakes

VIEWS, PARAMETERS = ("raw-flights", "weather"), ("nominal_time", "threshold")


def found(sql: str) -> list[tuple[int, int, bool, str]]:
    return [(one.line, one.column, one.is_certain, one.message) for one in sql_mistakes(sql, VIEWS, PARAMETERS)]


@pytest.mark.parametrize(
    ("sql", "at", "message"),
    [
        ("SELECT (1", (1, 8), "the bracket ( is not closed"),
        ("SELECT 1)", (1, 9), "there is no bracket that ) closes"),
        ("SELECT\n 'x FROM weather", (2, 2), "what is quoted here does not end: there is no second '"),
        ("SELECT 1 /* and", (1, 10), "the comment does not end: write */"),
        ("-- nothing", (1, 1), "there is no SQL statement in it"),
        ("SELECT 1;\nSELEC 2", (2, 1), "no statement begins with SELEC (did you mean SELECT?)"),
        (
            "SELECT * FROM weather\nWHERE n > :treshold",
            (2, 11),
            "there is no parameter :treshold (did you mean threshold?); the parameters are :nominal_time, :threshold",
        ),
    ],
)
def test_what_cannot_work(sql: str, at: tuple[int, int], message: str) -> None:
    assert found(sql) == [(*at, True, message)]


def test_what_may_not_work() -> None:
    assert found("SELECT 1;\nSELECT * FROM wether w JOIN base USING (n)") == [
        (
            2,
            15,
            False,
            "there is no input and no view 'wether' (did you mean weather?); the inputs are raw-flights, weather",
        ),
        (2, 29, False, "there is no input and no view 'base'; the inputs are raw-flights, weather"),
    ]
    ((line, _, is_certain, message),) = found("SELECT 1;\nSELECT a b c FROM weather")
    assert (line, is_certain) == (2, False)
    assert message.startswith("this may be no SQL that Spark understands near 'c': ")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t::date, ':no', \":no\", `:no`, 'it\\'s :no' FROM weather -- :no (",
        "SELECT 1 /* :no ( /* nested */ ' */ FROM weather WHERE :threshold > 1",
        "WITH c AS (SELECT * FROM `raw-flights`) SELECT * FROM c JOIN raw_flights USING (n)",
        "CREATE OR REPLACE TEMPORARY VIEW mine AS SELECT * FROM WEATHER; SELECT * FROM mine",
        "CACHE TABLE mine AS SELECT 1; SELECT * FROM mine",
        "SELECT * FROM weather LATERAL VIEW explode(m) e AS k, v",
        "SELECT * FROM range(5), parquet.`/data`, base.other, VALUES (1) AS v(n)",
        "FROM weather |> WHERE n > 1 |> SELECT n",
        "BEGIN DECLARE x INT DEFAULT 1; lbl: WHILE x < 3 DO SET x = x + 1; END WHILE lbl; SELECT x; END",
        "lbl: BEGIN SELECT 1; END",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SELECT transform(xs, x -> x + 1), r'\\', m['a'] FROM weather",
        "SET spark.sql.shuffle.partitions = 4; SELECT 1",
        "ADD JAR '/x.jar'; SELECT mine(1) FROM made_by_the_jar",
        "DECLARE VARIABLE x INT DEFAULT 5; SET VAR x = (SELECT max(n) FROM weather); SELECT x",
        "SELECT * FROM weather t PIVOT (sum(x) FOR y IN ('a', 'b'))",
        "MERGE INTO base.t USING weather s ON t.a = s.a WHEN MATCHED THEN UPDATE SET *",
    ],
)
def test_what_works(sql: str) -> None:
    assert [one for one in found(sql) if one[2]] == []
    assert [one for one in found(sql) if "no view" in one[3]] == []


@pytest.mark.parametrize(
    ("source", "mistakes"),
    [
        ("def run(spark, inputs, instance): ...", []),
        ("from somewhere import *", []),
        ("from somewhere import compute as run", []),
        ("run = lambda spark, inputs, instance: None", []),
        ("globals()['ru' + 'n'] = print", []),
        ("def main(): ...", [(1, "there is no function run(spark, inputs, instance) in it")]),
        ("x = 1\ndef run(:", [(2, "not Python: invalid syntax")]),
        ("\0", [(1, "not Python: source code string cannot contain null bytes")]),
    ],
)
def test_python(source: str, mistakes: list[tuple[int, str]]) -> None:
    assert [(one.line, one.message) for one in python_mistakes(source.encode(), "spark, inputs, instance")] == mistakes


def test_what_only_the_parser_does_not_understand_is_a_doubt() -> None:
    doubts = [one.is_doubt for one in sql_mistakes("SELECT a b c FROM weather", VIEWS, PARAMETERS)]
    views = [one.is_doubt for one in sql_mistakes("SELECT * FROM wether", VIEWS, PARAMETERS)]
    assert (doubts, views) == ([True], [False])


@pytest.mark.parametrize(
    ("given", "parameters", "said"),
    [
        ("instance", "spark, inputs, instances", "it gets all instances of a batch (batch: true)"),
        ("instances", "spark, inputs, instance", "it gets one instance"),
        ("instances", "inputs, instance", "it gets one instance"),
    ],
)
def test_one_instance_or_many(given: str, parameters: str, said: str) -> None:
    (one,) = python_mistakes(f"\n\ndef run(spark, inputs, {given}): ...".encode(), parameters)
    assert (one.line, one.is_certain) == (3, False)
    assert one.message == f"its last parameter is called {given}, but {said}: run({parameters})"
    right = parameters.rpartition(" ")[2]
    assert [*python_mistakes(f"def run(spark, inputs, {right}): ...".encode(), parameters)] == []
