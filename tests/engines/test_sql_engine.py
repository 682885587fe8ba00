from __future__ import annotations

from typing import Any
from zipfile import ZipFile

import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.errors import WorkflowError
from tests.spark.sandbox import Sandbox


def run(sandbox: Sandbox, sql: str, **task: Any) -> dict[str, int]:
    sandbox.file("q.sql", sql)
    workflow = sandbox.workflow(engine="spark-sql", path="q.sql")
    return dict(run_workflow(sandbox.task(workflow, **task)).records)


def refusal(sandbox: Sandbox, sql: str, **task: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        run(sandbox, sql, **task)
    return str(caught.value).replace(f"{sandbox.folder}/", "")


def test_parameters_are_values_and_never_text(sandbox: Sandbox) -> None:
    evil = "x'; DROP VIEW t; SELECT 'y"
    run(
        sandbox,
        "CREATE TEMPORARY VIEW t AS SELECT :nominal_time AS at, :name AS name;\n"
        "SELECT date_format(at, 'yyyy-MM-dd HH:mm') AS at, typeof(at) AS kind, name, ':name' AS text FROM t",
        properties={"name": evil, "not-a-name": "1", "nominal_time": "ignored"},
    )
    assert sandbox.rows() == [("2013-01-01 05:00", "timestamp", evil, ":name")]


def test_jars_of_the_workflow(sandbox: Sandbox) -> None:
    with ZipFile(sandbox.folder / "it's mine.jar", "w") as jar:
        jar.writestr("a.txt", "a")
    sandbox.file("q.sql", "LIST JARS")
    workflow = sandbox.workflow(engine="spark-sql", path="q.sql", lib=["it's mine.jar"])
    assert run_workflow(sandbox.task(workflow)).records["delays"] >= 1
    assert any("mine.jar" in row[0] for row in sandbox.rows())


def test_several_outputs_are_views(sandbox: Sandbox) -> None:
    records = run(
        sandbox,
        "CREATE TEMPORARY VIEW small_ones AS SELECT id FROM range(10) WHERE id < 3;\n"
        "CREATE TEMPORARY VIEW `big` AS SELECT id FROM range(10) WHERE id > :limit",
        outputs=(sandbox.output("small-ones"), sandbox.output("big")),
        properties={"limit": "7"},
    )
    assert records == {"small-ones": 3, "big": 2}


def test_without_outputs_queries_are_computed_too(sandbox: Sandbox) -> None:
    assert run(sandbox, "SELECT assert_true(id < 10) FROM range(10); SHOW VIEWS; SET x.y = 1", outputs=()) == {}
    assert refusal(sandbox, "SELECT 1 AS a;\n\nSELECT raise_error('a bad day') FROM range(3)", outputs=()) == (
        "q.sql:3: [USER_RAISED_EXCEPTION] a bad day"
    )


def test_several_outputs_and_a_view_too_few(sandbox: Sandbox) -> None:
    both = (sandbox.output("small-ones"), sandbox.output("big"))
    assert refusal(sandbox, "CREATE TEMPORARY VIEW big AS SELECT 1 AS id", outputs=both) == (
        "q.sql: with several outputs it must create a temporary view for each, and there is none for 'small-ones': "
        "write CREATE TEMPORARY VIEW `small-ones` AS SELECT ..."
    )


def test_names_with_a_dash_go_by_an_underscore_too(sandbox: Sandbox) -> None:
    sandbox.file("in/a.json", '{"a":1}')
    data = sandbox.input("raw-flights", "in")
    assert run(sandbox, "SELECT * FROM `raw-flights` UNION ALL SELECT * FROM raw_flights", inputs=(data,)) == {
        "delays": 2
    }


def test_an_exact_name_goes_before_an_alias(sandbox: Sandbox) -> None:
    sandbox.file("one/a.json", '{"a":1}')
    sandbox.file("two/a.json", '{"a":2}')
    inputs = (sandbox.input("a-b", "one"), sandbox.input("a_b", "two"))
    run(sandbox, "SELECT x.a, y.a AS b FROM `a-b` x, a_b y", inputs=inputs)
    assert sandbox.rows() == [(1, 2)]


def test_functions_and_settings_stay_in_the_instance(sandbox: Sandbox) -> None:
    run(
        sandbox, "SET spark.sql.shuffle.partitions = 9; CREATE TEMPORARY VIEW mine AS SELECT 1 AS a; SELECT * FROM mine"
    )
    assert sandbox.session().conf.get("spark.sql.shuffle.partitions") == "2"
    assert "[TABLE_OR_VIEW_NOT_FOUND] The table or view `mine` cannot be found." in refusal(
        sandbox, "SELECT * FROM mine", outputs=(sandbox.output("second"),)
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        pytest.param("-- nothing\n;", "q.sql: there is no SQL statement in it", id="empty"),
        pytest.param(
            "SELECT 1 AS a;\n\nCREATE TEMPORARY VIEW v AS SELECT 1 AS a;",
            "q.sql:3: the last statement must be a query; its rows are the output",
            id="no-query",
        ),
        pytest.param(
            "SELECT 1 AS a;\n\nSELECT a\nFORM x y",
            "q.sql:4: [PARSE_SYNTAX_ERROR] Syntax error at or near 'x'.",
            id="syntax",
        ),
        pytest.param(
            "SELECT 1 AS a;\nSELECT :day AS a, :nominal_time",
            "q.sql:2: there is no parameter :day; the parameters are :nominal_time, :threshold",
            id="parameter",
        ),
        pytest.param(
            "SELECT :nominal_time AS a,\n  :threshold AS b,\n  c FROM range(1)",
            "q.sql:3: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `c` "
            "cannot be resolved. Did you mean one of the following? [`id`].",
            id="column-after-parameters",
        ),
    ],
)
def test_malformed_files(sandbox: Sandbox, sql: str, message: str) -> None:
    assert refusal(sandbox, sql, properties={"threshold": "15"}) == message


def test_no_file(sandbox: Sandbox) -> None:
    task = sandbox.task(sandbox.workflow(engine="spark-sql", path="q.sql"))
    with pytest.raises(WorkflowError, match=r"q\.sql: the workflow's file cannot be read: No such file or directory$"):
        run_workflow(task)
